package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-refit/mcp-refit/policy"
)

// Exit codes. In wrapper mode the code is the child's own.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2 // usage, or a bad policy
)

// A usageError is a fault of whoever wrote the command line or the policy.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// An exitCode ends the command without a word.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, io stdio) int {
	root := rootCommand(io)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		fmt.Fprintln(io.err, "mcp-refit:", err)
		return exitUsage
	default:
		fmt.Fprintln(io.err, "mcp-refit:", err)
		return exitError
	}
}

const usage = `  mcp-refit [flags] -- COMMAND [ARG…]               client on our stdio, server a child on its stdio
  mcp-refit [flags] URL                             client on our stdio, server at URL
  mcp-refit [flags] --listen ADDR URL               client over HTTP, server at URL
  mcp-refit [flags] --listen ADDR -- COMMAND [ARG…] client over HTTP, server a child`

func rootCommand(io stdio) *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:           "mcp-refit [flags] {-- COMMAND [ARG…] | URL}",
		Short:         "A proxy that makes old MCP servers look current and untrusted ones safe",
		Long:          "A proxy between an MCP client and an MCP server. It makes old servers look current and\nuntrusted ones safe, and lets everything else through byte for byte.\n\n" + usage,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		target, err := targetOf(cmd, args)
		if err != nil {
			return err
		}
		if target == nil {
			return cmd.Help()
		}
		live, err := newLivePolicy(&s, cmd.Flags(), target.words())
		if err != nil {
			return err
		}
		return serve(cmd.Context(), live, target, io)
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	s.flags(root)
	wrappedEntryFlag(root.Flags())
	root.AddCommand(demoCommand(io), manifestCommand(io), policyCommand(io), versionCommand(io))
	root.AddCommand(scanCommand(io), wrapCommand(io), unwrapCommand(io))
	return root
}

// flagError says of a flag that there is none which one may be meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	hint := policy.Suggest("--"+unknown.GetSpecifiedName(), names)
	// The flag may be the server's: its command stands here without the -- before it.
	if args := cmd.Flags().Args(); hint == "" && len(args) > 0 && strings.Contains(cmd.Use, "-- COMMAND") && !strings.Contains(args[0], "://") {
		hint = fmt.Sprintf("; to start a server write: %s [flags] -- %s …", cmd.CommandPath(), strings.Join(args, " "))
	}
	return usagef("%w%s", err, hint)
}

// policyFlags adds a flag for each setting that the policy has one for.
func policyFlags(flags *pflag.FlagSet) {
	for _, f := range policy.Flags() {
		v := &settingFlag{field: f}
		flag := flags.VarPF(v, f.Flag, f.Short, f.Doc)
		if f.Bool {
			flag.NoOptDefVal = "true"
		}
		flag.DefValue = f.Default
	}
}

// A settingFlag remembers what was said on the command line, in order, to be
// put over the policy file.
type settingFlag struct {
	field  policy.Field
	values []string
}

func (s *settingFlag) String() string { return strings.Join(s.values, ",") }
func (s *settingFlag) Type() string {
	if s.field.Bool {
		return "bool" // which pflag prints as nothing
	}
	return s.field.Type
}
func (s *settingFlag) Set(v string) error { s.values = append(s.values, v); return nil }

// A target is the server: a command to start, or a URL.
type target struct {
	command []string
	url     *url.URL
}

// words is the server as a policy's sections match it.
func (t *target) words() []string {
	if t.url != nil {
		return []string{t.url.String()}
	}
	return t.command
}

// targetOf reads what stands behind the flags. It is nil if nothing does.
func targetOf(cmd *cobra.Command, args []string) (*target, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash > 0:
		return nil, usagef("%q stands before --; either a URL or -- and a command", args[0])
	case dash == 0 && len(args) == 0:
		return nil, usagef("no command behind --; for example: mcp-refit -- npx -y @modelcontextprotocol/server-everything")
	case dash == 0:
		return &target{command: args}, nil
	case len(args) == 0:
		return nil, nil
	case len(args) > 1:
		return nil, notATarget(cmd, args)
	}
	u, err := url.Parse(args[0])
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, notATarget(cmd, args)
	}
	return &target{url: u}, nil
}

// notATarget says of the first argument that it is none of what may stand
// there, and what may have been meant.
func notATarget(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Root().Commands() {
		names = append(names, c.Name())
	}
	hint := policy.Suggest(args[0], names)
	if hint == "" {
		hint = "; to start a server write: mcp-refit [flags] -- " + strings.Join(args, " ")
	}
	return usagef("%q is neither an http(s) URL nor a subcommand%s", args[0], hint)
}
