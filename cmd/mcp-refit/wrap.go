package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/clientconfig"
)

// A wrapJob is one run of wrap or unwrap.
type wrapJob struct {
	std    stdio
	unwrap bool
	dryRun bool
	scope  string
	config string
	self   string
}

// The values of --scope.
const (
	scopeAll     = "all"
	scopeUser    = "user"
	scopeProject = "project"
)

func wrapCommand(std stdio) *cobra.Command {
	job := &wrapJob{std: std}
	cmd := job.command(&cobra.Command{
		Use:   "wrap [flags] [CLIENT|FILE [SERVER…]]",
		Short: "Make a client's servers run through mcp-refit, in the client's own configuration",
		Long: `Edit the configuration of an MCP client, so that its servers run through mcp-refit.
Comments, order and formatting stay as they are, and unwrap takes it back to the last byte.

CLIENT is one of ` + clientNames() + `:
its files are found in the current folder and in your home. FILE is any other file of such a form.
SERVER is the name of a server in it; without one, all are wrapped. Without a client, all are listed.

Flags of the proxy go into the client's configuration: mcp-refit wrap cursor --config policy.yaml`,
	})
	cmd.Flags().StringVar(&job.config, "config", "", "The policy `file` that the servers run with.")
	cmd.Flags().StringVar(&job.self, "command", "", "The `path` of mcp-refit that is written; by default, of the one that runs.")
	policyFlags(cmd.Flags())
	return cmd
}

func unwrapCommand(std stdio) *cobra.Command {
	job := &wrapJob{std: std, unwrap: true}
	return job.command(&cobra.Command{
		Use:   "unwrap [flags] {CLIENT|FILE} [SERVER…]",
		Short: "Undo wrap",
		Long: `Take mcp-refit out of the configuration of an MCP client again. What wrap wrote is taken
back to the last byte; what you changed beside it stays.

CLIENT is one of ` + clientNames() + `.`,
	})
}

func clientNames() string {
	var names []string
	for _, c := range clientconfig.Clients {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func (j *wrapJob) command(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&j.dryRun, "dry-run", false, "Change nothing, show what would be changed.")
	cmd.Flags().StringVar(&j.scope, "scope", scopeAll, "Of the client's files, only the `user`'s own or those of the project in the current folder: all|user|project.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return j.run(cmd, args) }
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return strings.Split(clientNames(), ", "), cobra.ShellCompDirectiveDefault
	}
	return cmd
}

func (j *wrapJob) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains([]string{scopeAll, scopeUser, scopeProject}, j.scope) {
		return usagef("--scope %q is none of all, user, project", j.scope)
	}
	system, err := thisSystem()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if j.unwrap {
			return usagef("unwrap what? CLIENT is one of %s", clientNames())
		}
		return j.list(system)
	}
	options := clientconfig.Options{Servers: args[1:]}
	if !j.unwrap {
		if options.Self, err = j.selfPath(); err != nil {
			return err
		}
		if options.Flags, err = j.flags(cmd.Flags()); err != nil {
			return err
		}
	}
	files, err := j.files(args[0], system)
	if err != nil {
		return err
	}
	return j.edit(files, options)
}

func thisSystem() (clientconfig.System, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return clientconfig.System{}, err
	}
	dir, err := os.Getwd()
	return clientconfig.System{OS: runtime.GOOS, Home: home, Dir: dir, Getenv: os.Getenv}, err
}

// selfPath is what a client starts us by: an absolute path, since clients have
// a PATH of their own.
func (j *wrapJob) selfPath() (string, error) {
	path := j.self
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return "", fmt.Errorf("our own path is not known (%w); say it with --command", err)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if base := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe"); base != "mcp-refit" {
		return "", usagef("%s is not called mcp-refit, by which unwrap knows what is wrapped; say another path with --command", path)
	}
	return path, nil
}

// flags are the proxy's flags as they go into the configuration. They must
// make a policy, and the files in them are written absolute.
func (j *wrapJob) flags(flags *pflag.FlagSet) ([]string, error) {
	if _, err := (&settings{file: j.config}).load(flags, "", nil); err != nil {
		return nil, err
	}
	var out []string
	add := func(name, value string, file bool) error {
		if file && value != "-" {
			var err error
			if value, err = filepath.Abs(value); err != nil {
				return err
			}
		}
		out = append(out, "--"+name+"="+value)
		return nil
	}
	if j.config != "" {
		if err := add("config", j.config, true); err != nil {
			return nil, err
		}
	}
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if s, ok := f.Value.(*settingFlag); ok {
			for _, v := range s.values {
				errs = append(errs, add(f.Name, v, s.field.Type == "file"))
			}
		}
	})
	return out, errors.Join(errs...)
}

// files are the files that a client or a path stands for.
func (j *wrapJob) files(arg string, system clientconfig.System) ([]clientconfig.File, error) {
	client, ok := clientconfig.ClientByName(arg)
	if !ok {
		path, err := filepath.Abs(arg)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			if !strings.ContainsAny(arg, `./\`) {
				return nil, usagef("%q is neither a file nor a client; the clients are %s", arg, clientNames())
			}
			return nil, err
		}
		return []clientconfig.File{clientconfig.FileAt(path, system)}, nil
	}
	var found []clientconfig.File
	var looked []string
	for _, f := range client.Files(system) {
		if j.scope == scopeUser && f.Project || j.scope == scopeProject && !f.Project {
			continue
		}
		looked = append(looked, f.Path)
		if _, err := os.Stat(f.Path); err == nil {
			found = append(found, f)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no configuration here; looked for %s", client.Title, strings.Join(looked, ", "))
	}
	return found, nil
}

// edit edits the files. One that can't be edited does not keep the others from it.
func (j *wrapJob) edit(files []clientconfig.File, o clientconfig.Options) error {
	var errs []error
	named := map[string]bool{}
	for _, f := range files {
		results, err := j.editFile(f, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Path, pathless(err)))
		}
		for _, r := range results {
			named[r.Server] = true
			if r.State == clientconfig.Refused {
				errs = append(errs, fmt.Errorf("%s: %s %q is left as it is: %s", f.Path, r.Table, r.Server, r.Reason))
			}
		}
	}
	for _, name := range o.Servers {
		if !named[name] {
			errs = append(errs, fmt.Errorf("there is no server %q", name))
		}
	}
	return errors.Join(errs...)
}

func (j *wrapJob) editFile(f clientconfig.File, o clientconfig.Options) ([]clientconfig.Result, error) {
	text, err := clientconfig.Read(f.Path)
	if err != nil {
		return nil, err
	}
	do := clientconfig.Wrap
	if j.unwrap {
		do = clientconfig.Unwrap
	}
	after, results, err := do(text, f.Format, o)
	if err != nil {
		return results, err
	}
	if j.dryRun {
		_, err := j.std.out.Write(diff.Diff(f.Path, text, f.Path, after))
		return results, err
	}
	var backup string
	if string(after) != string(text) {
		if backup, err = clientconfig.Write(f.Path, text, after); err != nil {
			return results, err
		}
	}
	writeResults(j.std.out, f.Path, results)
	if len(o.Flags) > 0 && slices.ContainsFunc(results, func(r clientconfig.Result) bool { return r.State == clientconfig.Already }) {
		fmt.Fprintln(j.std.out, "  what is wrapped already keeps its flags; unwrap it first to give it others")
	}
	if backup != "" {
		fmt.Fprintf(j.std.out, "  what it was is in %s; restart the client to use it\n", backup)
	}
	return results, nil
}

func writeResults(w io.Writer, path string, results []clientconfig.Result) {
	fmt.Fprintln(w, path)
	for _, r := range results {
		if r.State == clientconfig.Refused {
			fmt.Fprintf(w, "  %-10s %s %s: %s\n", r.State, r.Table, r.Server, r.Reason)
			continue
		}
		fmt.Fprintf(w, "  %-10s %s %s\n", r.State, r.Table, r.Server)
	}
	if len(results) == 0 {
		fmt.Fprintln(w, "  no servers; add one in the client as usual, and wrap it then")
	}
}

// list shows the servers of all clients that are found.
func (j *wrapJob) list(system clientconfig.System) error {
	var errs []error
	found := false
	for _, c := range clientconfig.Clients {
		for _, f := range c.Files(system) {
			text, err := clientconfig.Read(f.Path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			found = true
			var results []clientconfig.Result
			if err == nil {
				results, err = clientconfig.List(text, f.Format)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", f.Path, pathless(err)))
				continue
			}
			fmt.Fprintf(j.std.out, "%s (%s): ", c.Title, c.Name)
			writeResults(j.std.out, f.Path, results)
		}
	}
	if !found {
		fmt.Fprintf(j.std.out, "no client's configuration was found; looked for %s\n", clientNames())
	}
	return errors.Join(errs...)
}

// pathless is an error without the path that is said before it.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// wrappedEntryFlag adds the flag in which wrap keeps what an entry was. It
// says nothing to the proxy.
func wrappedEntryFlag(flags *pflag.FlagSet) {
	flags.String(clientconfig.EntryFlag, "", "What unwrap restores.")
	_ = flags.MarkHidden(clientconfig.EntryFlag) // it was just added
}
