package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/scan"
	"github.com/mcp-refit/mcp-refit/proxy"
)

var nopLog = zap.NewNop()

// newestWithHandshake is the newest revision that begins with initialize.
const newestWithHandshake = "2025-11-25"

// A scanClient is a current client that is connected through the proxy.
type scanClient struct {
	session *mcp.ClientSession
	cancel  context.CancelFunc
	ended   chan error // of serve
	tools   []string   // that the server lists
}

// A startError is one of a server that could not even be started.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// connect offers the server a revision; empty is the newest. The handshake is
// bound by handshake, and everything after it by ctx.
func (j *scanJob) connect(handshake, ctx context.Context, px *proxy.Proxy, revision string) (*scanClient, error) {
	clientIn, toServer := io.Pipe()
	toClient, clientOut := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	c := &scanClient{cancel: cancel, ended: make(chan error, 1)}
	var log tailWriter
	go func() {
		err := j.serve(ctx, px, stdio{clientIn, clientOut, &log})
		_ = clientOut.Close() // always nil, as of the next
		_ = clientIn.Close()
		c.ended <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-refit-scan", Version: versionText()}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return declined(), nil
		},
		// A form that the SDK would refuse is to be seen as well.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(declineAll)
	var err error
	c.session, err = client.Connect(handshake, &mcp.IOTransport{Reader: toClient, Writer: toServer, MaxLineLength: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err == nil {
		return c, nil
	}
	_ = toServer.Close()
	_ = toClient.Close()
	cancel()
	return nil, connectError(<-c.ended, err, &log)
}

// connectError says why there is no connection: how the server ended, if it
// did, and the end of its log.
func connectError(end, err error, log *tailWriter) error {
	var code exitCode
	switch {
	case errors.As(end, &code):
		err = fmt.Errorf("the server exited with code %d before it was connected", int(code))
	case end != nil && !errors.Is(end, context.Canceled) && !errors.Is(end, io.ErrClosedPipe):
		return startError{end}
	}
	if tail := log.tail(); tail != "" {
		return fmt.Errorf("connect: %w; its log ends with:\n%s", err, tail)
	}
	return fmt.Errorf("connect: %w", err)
}

func declined() *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }

// declineAll answers every question before the SDK looks at its form.
func declineAll(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "elicitation/create" {
			return declined(), nil
		}
		return next(ctx, method, req)
	}
}

// close ends the session, waits until the server has ended, and says if that
// was not in order.
func (c *scanClient) close() error {
	_ = c.session.Close() // what there is to say, serve says
	err := <-c.ended
	c.cancel()
	var code exitCode
	if errors.As(err, &code) {
		return fmt.Errorf("it exited with code %d when its input was closed", int(code))
	}
	return nil
}

func (c *scanClient) server() scan.Server {
	info := c.session.InitializeResult()
	s := scan.Server{Revision: info.ProtocolVersion}
	if info.ServerInfo != nil {
		s.Name, s.Title, s.Version = info.ServerInfo.Name, info.ServerInfo.Title, info.ServerInfo.Version
	}
	return s
}

// listAll asks for every list that the server says it has.
func (c *scanClient) listAll(ctx context.Context, found *scan.Collector) {
	has := c.session.InitializeResult().Capabilities
	if has == nil {
		return
	}
	if has.Tools != nil {
		c.list(ctx, found, "tools/list", func(cursor string) error {
			page, err := c.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return err
			}
			for _, t := range page.Tools {
				c.tools = append(c.tools, t.Name)
			}
			return nil
		})
	}
	if has.Resources != nil {
		c.list(ctx, found, "resources/list", func(cursor string) error {
			_, err := c.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			return err
		})
		c.list(ctx, found, "resources/templates/list", func(cursor string) error {
			_, err := c.session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			return err
		})
	}
	if has.Prompts != nil {
		c.list(ctx, found, "prompts/list", func(cursor string) error {
			_, err := c.session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			return err
		})
	}
}

// maxPages is how many pages of one list are asked for.
const maxPages = 1000

// list asks for all pages of a list. One that the client can't read is a
// finding, and where it goes on is known all the same.
func (c *scanClient) list(ctx context.Context, found *scan.Collector, method string, page func(cursor string) error) {
	fault := func(format string, args ...any) {
		found.Add(scan.Finding{Level: scan.Fault, Rule: "list", Subject: method, Method: method, Reason: fmt.Sprintf(format, args...)})
	}
	cursor := ""
	for n := range maxPages {
		err := page(cursor)
		came, next := found.Page(method)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && came <= n:
			fault("the server says that it has this list, and answers with an error: %v", err)
			return
		case err != nil:
			fault("a current client (the Go SDK's) can't read page %d: %v", n+1, err)
		}
		switch {
		case next == "":
			return
		case next == cursor:
			fault("page %d says that it follows itself", n+1)
			return
		}
		cursor = next
	}
	fault("it has more than %d pages; the rest was not asked for", maxPages)
}

// lists says that the server has a tool of that name, or has not said which it
// has. The error is for whoever asked for one that is not there.
func (c *scanClient) lists(tool string) error {
	if len(c.tools) == 0 || slices.Contains(c.tools, tool) {
		return nil
	}
	names := slices.Sorted(slices.Values(c.tools))
	more := ""
	if len(names) > maxNames {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return usagef("--call %s: the server has no such tool; it has %s%s", tool, strings.Join(names, ", "), more)
}

// maxNames is how many tools an error names.
const maxNames = 50

// maxRounds is how often one call is answered with decline.
const maxRounds = 8

// call calls a tool, and declines what it asks.
func (c *scanClient) call(ctx context.Context, found *scan.Collector, call toolCall) {
	found.Calling(call.name)
	defer found.Calling("")
	note := func(level scan.Level, reason string) {
		found.Add(scan.Finding{Level: level, Rule: "call", Subject: fmt.Sprintf("tool %q", call.name), Method: "tools/call", Reason: reason})
	}
	params := &mcp.CallToolParams{Name: call.name, Arguments: call.arguments}
	for range maxRounds {
		result, err := c.session.CallTool(ctx, params)
		if err != nil {
			note(scan.Note, "the call failed: "+err.Error())
			return
		}
		if len(result.InputRequests) == 0 {
			return
		}
		params.RequestState, params.InputResponses = result.RequestState, mcp.InputResponseMap{}
		for key, request := range result.InputRequests {
			if _, ok := request.(*mcp.ElicitParams); !ok {
				note(scan.Note, "it asks for more than a form, which a scan does not answer")
				return
			}
			params.InputResponses[key] = declined()
		}
	}
	note(scan.Fault, fmt.Sprintf("it asks again after %d answers of decline", maxRounds))
}

// A tailWriter keeps the end of what is written to it.
type tailWriter struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how many bytes of a server's log are shown when it fails.
const maxTail = 4 << 10

func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = slices.Delete(t.text, 0, over)
	}
	return len(p), nil
}

func (t *tailWriter) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
