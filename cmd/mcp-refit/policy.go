package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-refit/mcp-refit/policy"
)

// policyCommand has what can be asked of a policy without running it. --config
// and the flags that say what the policy file can say count here as well.
func policyCommand(std stdio) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check, show and explain policies",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(policyCheckCommand(std), policyShowCommand(std), policyExplainCommand(std), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the policy file, for editors",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := std.out.Write(policy.Schema())
			return err
		},
	})
	return c
}

// usageArgs makes a fault in the number of arguments one of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

func policyCheckCommand(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a policy file, with line and column",
		Long:  "Say what is wrong with a policy file: each fault with its line and column, one a line.\nThe exit code is 2 if there is one.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := readPolicyFile(args[0])
			if err != nil {
				return usageError{err}
			}
			config, err := policy.Parse(args[0], data)
			if err == nil {
				_, err = config.Compile()
			}
			if err != nil {
				writeFaults(std.err, err)
				return exitCode(exitUsage)
			}
			_, err = fmt.Fprintf(std.out, "%s: ok\n", args[0])
			return err
		},
	}
}

// writeFaults writes all that is wrong with a policy, one a line.
func writeFaults(w io.Writer, err error) {
	faults, ok := err.(policy.Errors)
	if !ok {
		fmt.Fprintln(w, err)
		return
	}
	for _, f := range faults {
		fmt.Fprintln(w, f)
	}
}

func policyShowCommand(std stdio) *cobra.Command {
	var about settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [flags] [-- COMMAND [ARG…] | URL]",
		Short: "Print the policy in force, each value with where it comes from",
		Long:  "Print the policy in force as a policy file, each value with where it comes from: the\ndefault, a place in the file, or a flag. With a server, what its own section says is in it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 && !strings.Contains(args[0], "://") {
				return usagef("%q is no URL; a policy file is named by --config, and a command stands behind --", args[0])
			}
			p, err := about.load(cmd.Flags(), "", args)
			if err != nil {
				return err
			}
			if asJSON {
				return writeValues(std.out, p.Config)
			}
			_, err = io.WriteString(std.out, p.Config.Show())
			return err
		},
	}
	about.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "One JSON line a value, with path, value and source.")
	return cmd
}

// writeValues writes each value as a line of JSON.
func writeValues(w io.Writer, c *policy.Config) error {
	for v := range c.Values() {
		line, err := marshalLine(struct {
			Path   string `json:"path"`
			Value  string `json:"value"`
			Source string `json:"source"`
		}{v.Path, v.Text, v.Source.String()})
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func policyExplainCommand(std stdio) *cobra.Command {
	var about settings
	var origin string
	cmd := &cobra.Command{
		Use:   "explain [flags] {URL… | --server NAME} [-- COMMAND [ARG…]]",
		Short: "Say what becomes of an icon's or website's URL, and why",
		Long:  "Say what becomes of a URL as an icon and as a websiteUrl, and which line of the policy\ndecides. With --server NAME or a command behind --, say first which section is that\nserver's and what it changes. Nothing is fetched.",
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				urls, command = args[:dash], args[dash:]
			}
			if len(urls) == 0 && command == nil && about.server == "" {
				return usagef("explain what? For example: mcp-refit policy explain https://cdn.example.com/icon.png")
			}
			p, err := about.load(cmd.Flags(), "", command)
			if err != nil {
				return err
			}
			if command != nil || about.server != "" {
				if err := explainServer(std.out, cmd, &about, p.Config); err != nil {
					return err
				}
			}
			if origin, err = originOf(origin); err != nil {
				return err
			}
			for _, u := range urls {
				fmt.Fprintln(std.out, u)
				for line := range strings.Lines(p.Explain(policy.IconArgs{URL: u, Origin: origin})) {
					fmt.Fprint(std.out, "  ", line)
				}
			}
			return nil
		},
	}
	about.flags(cmd)
	cmd.Flags().StringVar(&origin, "origin", "", "The server's `URL`, for the rule self; a server on stdio has none.")
	return cmd
}

// originOf is the origin of a server's URL.
func originOf(server string) (string, error) {
	if server == "" {
		return "", nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", usagef("--origin: %q is not a URL", server)
	}
	return u.Scheme + "://" + u.Host, nil
}

// explainServer says what is different for one server.
func explainServer(w io.Writer, cmd *cobra.Command, about *settings, own *policy.Config) error {
	general, err := about.general(cmd.Flags())
	if err != nil {
		return err
	}
	diff := own.Diff(general.For("", nil))
	if len(diff) == 0 {
		_, err := fmt.Fprintln(w, "the general policy, no section changes anything")
		return err
	}
	for _, line := range diff {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
