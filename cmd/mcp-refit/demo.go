package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

func demoCommand(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what the proxy does, on an old server that is built in",
		Long:  "Run an old server and a current client, both built in and both real, through the proxy,\nand print what the one sent and what the other got. Nothing leaves this machine.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
			defer cancel()
			return runDemo(ctx, std.out)
		},
	}
}

// demoTimeout bounds the demo. It takes a fraction of a second.
const demoTimeout = 30 * time.Second

// runDemo fails if the proxy did not do its job.
func runDemo(ctx context.Context, out io.Writer) error {
	d, err := startDemo(ctx)
	if err != nil {
		return err
	}
	defer d.stop()
	tools, err := d.client.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	bad, err := d.order(ctx, map[string]any{"size": "Large", "cups": 2.5})
	if err != nil {
		return err
	}
	good, err := d.order(ctx, map[string]any{"size": "l", "cups": 2})
	if err != nil {
		return err
	}
	return d.report(out, tools, bad, good)
}

// A demo is the old server, the current client and the proxy between them.
type demo struct {
	client *mcp.ClientSession
	server *tap // what the server sends
	got    *tap // what the client gets
	stop   func()

	mu      sync.Mutex
	content map[string]any // what the user answers next
}

func startDemo(ctx context.Context) (*demo, error) {
	d := &demo{server: &tap{}, got: &tap{}}
	config := policy.Default()
	config.Icons.Deadline = policy.Duration(10 * time.Second) // a demo shows its icon on a busy machine, too
	compiled, err := config.Compile()
	if err != nil {
		return nil, err
	}
	icons := newFetcher(compiled.Config)
	px := &proxy.Proxy{Policy: func() *policy.Policy { return compiled }, Icons: icons}

	clientIn, toServer := io.Pipe()
	toClient, clientOut := io.Pipe()
	serverIn, proxyToServer := io.Pipe()
	proxyFromServer, serverOut := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		_ = oldServer().Run(ctx, &mcp.IOTransport{Reader: serverIn, Writer: serverOut})
		serverOut.Close()
	})
	running.Go(func() {
		_ = px.Run(ctx,
			proxy.Stream{R: clientIn, W: clientOut},
			proxy.Stream{R: io.TeeReader(proxyFromServer, d.server), W: proxyToServer})
		clientOut.Close()
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "demo-client", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("the middleware answers")
		},
	})
	client.AddReceivingMiddleware(d.careless)
	transport := &mcp.IOTransport{Reader: teeCloser{io.TeeReader(toClient, d.got), toClient}, Writer: toServer}
	d.client, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	d.stop = func() {
		if d.client != nil {
			d.client.Close()
		}
		cancel()
		running.Wait()
		icons.Close()
	}
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return d, nil
}

// careless answers as many clients do, without a look at the form.
func (d *demo) careless(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "elicitation/create" {
			return next(ctx, method, req)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return &mcp.ElicitResult{Action: "accept", Content: d.content}, nil
	}
}

type teeCloser struct {
	io.Reader
	io.Closer
}

// A tap keeps the lines that went by.
type tap struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tap) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// find returns the first message that holds the text, as a tree.
func (t *tap) find(text string) map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(t.text.String()) {
		if strings.Contains(line, text) {
			var v map[string]any
			if json.Unmarshal([]byte(line), &v) == nil {
				return v
			}
		}
	}
	return nil
}

// order calls the tool, and answers its question with content.
func (d *demo) order(ctx context.Context, content map[string]any) (string, error) {
	d.mu.Lock()
	d.content = content
	d.mu.Unlock()
	result, err := d.client.CallTool(ctx, &mcp.CallToolParams{Name: "order_coffee"})
	if err != nil {
		return "", fmt.Errorf("tools/call: %w", err)
	}
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text, nil
		}
	}
	return "", errors.New("tools/call: no text in the result")
}

// report prints both sides, and says whether the proxy did its job.
func (d *demo) report(out io.Writer, tools *mcp.ListToolsResult, bad, good string) error {
	p := newSideBySide(out)
	icon := dig(d.server.find(`"tools":[`), "result", "tools", 0, "icons")
	iconGot := dig(d.got.find(`"tools":[`), "result", "tools", 0, "icons")
	form := dig(d.server.find("elicitation/create"), "params", "requestedSchema", "properties", "size")
	formGot := dig(d.got.find("elicitation/create"), "params", "requestedSchema", "properties", "size")

	p.section("1. A form of 2025-06-18 (enum with enumNames) becomes one that today's clients show", form, formGot)
	p.section("2. An icon on an untrusted host is stripped; one that came as data is decoded and encoded anew", icon, iconGot)
	p.title("3. A wrong answer never reaches the server")
	fmt.Fprintf(out, "   the user answered   {\"size\":\"Large\",\"cups\":2.5}\n   the server was told %s\n\n", bad)
	fmt.Fprintf(out, "   the user answered   {\"size\":\"l\",\"cups\":2}\n   the server says     %s\n\n", good)

	options, _ := dig(formGot, "oneOf").([]any)
	_, names := formGot.(map[string]any)["enumNames"]
	left, _ := iconGot.([]any)
	switch {
	case len(options) != 3 || names:
		return errors.New("demo: the form was not refitted")
	case len(left) != 1 || len(tools.Tools) != 1 || len(tools.Tools[0].Icons) != 1 || !strings.HasPrefix(tools.Tools[0].Icons[0].Source, "data:image/png;base64,"):
		return errors.New("demo: the icons were not made safe")
	case !strings.Contains(bad, "size") || !strings.Contains(bad, "cups"):
		return errors.New("demo: the wrong answer was not refused")
	case good != "2 cups of size l":
		return errors.New("demo: the good answer did not arrive")
	}
	return nil
}

// dig follows keys and indexes into a tree; nil where there is nothing.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch at := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[at]
		case int:
			l, _ := v.([]any)
			if at >= len(l) {
				return nil
			}
			v = l[at]
		}
	}
	return v
}

// isTerminal reports whether w is a terminal that takes colours.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}
