package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/scan"
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// A scanJob is one run of scan.
type scanJob struct {
	std    stdio
	policy *policy.Policy
	target string // as the report names it

	// serve carries the messages between our client on std and the server.
	serve func(ctx context.Context, px *proxy.Proxy, std stdio) error

	calls   []toolCall
	timeout time.Duration
	json    bool
	sarif   bool
	html    string
	failOn  string
}

// A toolCall is a tool to call, and the arguments for it.
type toolCall struct {
	name      string
	arguments json.RawMessage
}

// The values of --fail-on, and the level that each begins with.
var failLevels = map[string]scan.Level{"none": "", "faults": scan.Fault, "changes": scan.Change}

func scanCommand(std stdio) *cobra.Command {
	job := &scanJob{std: std}
	var policyOf settings
	var calls []string
	cmd := &cobra.Command{
		Use:   "scan [flags] {-- COMMAND [ARG…] | URL}",
		Short: "Connect to a server and report what would be changed, changing nothing",
		Long: `Connect to a server as a current client does, list what it has, and report what mcp-refit
would do with it under this policy: each icon, each form, and what clients stumble over.

No tool is called unless --call names it. What a tool asks is answered with decline.
Icons are fetched only where the policy inlines them, as the proxy itself would.`,
		Args: cobra.ArbitraryArgs,
	}
	policyOf.flags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&calls, "call", nil, "Call a `TOOL[=JSON]`, with these arguments, to see the forms that it asks; can be repeated.")
	flags.BoolVar(&job.json, "json", false, "Print the report as JSON.")
	flags.BoolVar(&job.sarif, "sarif", false, "Print the findings as SARIF 2.1.0.")
	flags.StringVar(&job.html, "html", "", "Write the report to this `file`, too, as one page of HTML.")
	flags.StringVar(&job.failOn, "fail-on", "none", "Exit with 1 at such findings: none|faults|changes; changes are faults and what would be changed.")
	flags.DurationVar(&job.timeout, "timeout", 2*time.Minute, "How long the scan may take in all.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		server, err := targetOf(cmd, args)
		switch {
		case err != nil:
			return err
		case server == nil:
			return usagef("scan what? For example: mcp-refit scan -- npx -y @modelcontextprotocol/server-everything")
		}
		if job.calls, err = toolCalls(calls); err != nil {
			return err
		}
		_, ok := failLevels[job.failOn]
		switch {
		case !ok:
			return usagef("--fail-on %q is none of none, faults, changes", job.failOn)
		case job.json && job.sarif:
			return usagef("either --json or --sarif")
		case job.timeout <= 0:
			return usagef("--timeout must be more than nothing")
		}
		if err := flags.Set("observe", "true"); err != nil {
			return err
		}
		if job.policy, err = policyOf.load(flags, "", server.words()); err != nil {
			return err
		}
		job.serveTarget(server)
		return job.run(cmd.Context())
	}
	return cmd
}

// toolCalls reads the values of --call.
func toolCalls(values []string) ([]toolCall, error) {
	var out []toolCall
	for _, v := range values {
		name, arguments, given := strings.Cut(v, "=")
		c := toolCall{name: name, arguments: json.RawMessage("{}")}
		if given {
			c.arguments = json.RawMessage(arguments)
		}
		var object map[string]any
		if err := json.Unmarshal(c.arguments, &object); err != nil || object == nil || name == "" {
			return nil, usagef("--call %s: it is written TOOL or TOOL=JSON, with an object of arguments", v)
		}
		out = append(out, c)
	}
	return out, nil
}

// run scans, and writes the report.
func (j *scanJob) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	report, err := j.scan(ctx)
	if err != nil {
		return err
	}
	report.Tool, report.Target = "mcp-refit "+versionText(), j.target
	if err := j.write(report); err != nil {
		return err
	}
	if least := failLevels[j.failOn]; least != "" && report.Has(least) {
		return exitCode(exitError)
	}
	return nil
}

func (j *scanJob) write(r *scan.Report) error {
	if j.html != "" {
		var page bytes.Buffer
		if err := r.HTML(&page); err != nil {
			return err
		}
		if err := os.WriteFile(j.html, page.Bytes(), 0o666); err != nil {
			return err
		}
	}
	switch {
	case j.json:
		return r.JSON(j.std.out)
	case j.sarif:
		return r.SARIF(j.std.out, versionText())
	}
	return r.Text(j.std.out)
}

// serveTarget makes the job's serve the one that the proxy itself runs by.
func (j *scanJob) serveTarget(t *target) {
	if t.url != nil {
		shown := *t.url
		shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
		j.target = shown.String()
		j.serve = func(ctx context.Context, px *proxy.Proxy, std stdio) error {
			std.err = j.std.err // where a login says what is to be done
			return serveURL(ctx, px, j.policy.Config, t.url, std)
		}
		return
	}
	j.target = strings.Join(t.command, " ")
	j.serve = func(ctx context.Context, px *proxy.Proxy, std stdio) error {
		return wrapChild(ctx, px, j.policy, t, std, nopLog, func(error) {})
	}
}

// iconWait is how long a scan waits for the icons of one message: nobody is
// kept waiting, and what is late would be reported as missing.
const iconWait = 30 * time.Second

// scan connects and asks for everything. A server that does not survive the
// first question of a current client gets a second try.
func (j *scanJob) scan(ctx context.Context) (*scan.Report, error) {
	j.policy.Config.Icons.Deadline = policy.Duration(min(iconWait, j.timeout/2))
	icons := newFetcher(j.policy.Config)
	defer icons.Close()
	var found scan.Collector
	px := func() *proxy.Proxy {
		return &proxy.Proxy{
			Policy: func() *policy.Policy { return j.policy }, Icons: icons, FetchObserved: true,
			OnDecision: found.Decision, OnMessage: found.Message, OnStray: found.Stray,
		}
	}
	first, cancel := context.WithTimeout(ctx, j.timeout/2)
	defer cancel()
	c, err := j.connect(first, ctx, px(), "")
	if err != nil && ctx.Err() == nil && !errors.As(err, new(startError)) {
		found.Reset()
		old, oldErr := j.connect(ctx, ctx, px(), newestWithHandshake)
		if oldErr == nil {
			found.Add(scan.Finding{Level: scan.Fault, Rule: "discover", Subject: "the server", Method: "server/discover",
				Reason: "it does not survive server/discover, with which current clients begin: " + err.Error()})
		}
		c, err = old, oldErr
	}
	if err != nil {
		return nil, err
	}
	c.listAll(ctx, &found)
	for _, call := range j.calls {
		if err := c.lists(call.name); err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.call(ctx, &found, call)
	}
	err = c.close()
	report := found.Report()
	report.Server = c.server()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the scan was not done in %v", j.timeout)
	}
	if err != nil {
		report.Findings = append(report.Findings, scan.Finding{Level: scan.Fault, Rule: "end", Subject: "the server", Reason: err.Error()})
	}
	return report, nil
}
