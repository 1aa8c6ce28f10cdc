package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// sdkServer is a server of the Go SDK that has one of everything that the
// bridge must carry.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3})
			if err != nil {
				return nil, nil, err
			}
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(res.Action, " ", res.Content["name"])}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(_ context.Context, _ *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// sdkSession connects a client of the Go SDK, over a stream, to the server at
// an address, and ends all of it with the test.
func sdkSession(t *testing.T, p *Proxy, address, revision string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.Upstream = u
	fromClient, toBridge := io.Pipe()
	fromBridge, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- p.RunURL(context.Background(), Stream{R: fromClient, W: toClient})
		toClient.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal("connect: ", err)
	}
	t.Cleanup(func() {
		session.Close()
		toBridge.Close()
		if err := <-ended; err != nil {
			t.Error("RunURL: ", err)
		}
	})
	return session
}

// TestRunURLWithSDK runs a client of the Go SDK against its servers of every
// kind, with everything that they say to each other.
func TestRunURLWithSDK(t *testing.T) {
	servers := map[string]func(*mcp.Server) http.Handler{
		"stateful": func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
		},
		"stateful JSON": func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{JSONResponse: true})
		},
		"stateless": func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"HTTP+SSE": func(s *mcp.Server) http.Handler {
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		},
	}
	// What a server of that kind can't do directly either.
	cant := map[string]string{
		"stateful JSON 2025-11-25 progress": "it has no stream in its answers",
		"stateful JSON 2025-11-25 ask":      "it has no stream in its answers",
		"stateless 2025-11-25 ask":          "it can't ask",
	}
	for name, handler := range servers {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+revision, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				t.Run("", func(t *testing.T) {
					server := httptest.NewServer(handler(sdkServer()))
					t.Cleanup(server.Close)
					progress, changed := make(chan float64, 16), make(chan bool, 16)
					session := sdkSession(t, &Proxy{}, server.URL, revision, &mcp.ClientOptions{
						ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
						ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
						ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
						},
					})
					call := func(tool, text string) string {
						t.Helper()
						params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}}
						params.SetProgressToken("p")
						res, err := session.CallTool(t.Context(), params)
						if err != nil {
							t.Fatal(tool, ": ", err)
						}
						var texts []string
						for _, c := range res.Content {
							texts = append(texts, c.(*mcp.TextContent).Text)
						}
						return strings.Join(texts, "")
					}
					if got := call("echo", "é \u2028 ünï"); got != "é \u2028 ünï" {
						t.Errorf("echo gave %q", got)
					}
					big := strings.Repeat("0123456789", 30_000)
					if got := call("echo", big); got != big {
						t.Errorf("echo of %d bytes gave %d", len(big), len(got))
					}
					key := name + " " + revision
					if cant[key+" progress"] == "" {
						call("progress", "")
						for want := 1.0; want <= 3; want++ {
							if got := <-progress; got != want {
								t.Errorf("progress %v, want %v", got, want)
							}
						}
					}
					if cant[key+" ask"] == "" && revision != "2026-07-28" {
						if got := call("ask", ""); got != "accept Ada" {
							t.Errorf("ask gave %q", got)
						}
					}
					if !strings.HasPrefix(name, "stateless") || revision == "2026-07-28" {
						call("grow", "")
						<-changed
					}
				})
			})
		}
	}
}

// TestRunURLManyCalls has many calls under way at once, each answered as itself.
func TestRunURLManyCalls(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		s := sdkServer()
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		t.Cleanup(server.Close)
		session := sdkSession(t, &Proxy{}, server.URL, "2025-11-25", nil)
		var wrong atomic.Int32
		done := make(chan bool)
		const calls = 200
		for i := range calls {
			go func() {
				text := strings.Repeat(fmt.Sprint(i), 100)
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}})
				if err != nil || res.Content[0].(*mcp.TextContent).Text != text {
					wrong.Add(1)
				}
				done <- true
			}()
		}
		for range calls {
			<-done
		}
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d of %d calls were not answered right", n, calls)
		}
	})
}
