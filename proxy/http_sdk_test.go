package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

const oldForm = `{"type":"object","properties":{"theme":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]}},"required":["theme"]}`

// sdkServer is a server of the Go SDK whose tools ask in the way of each era.
func sdkServer(modern bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1", WebsiteURL: "https://evil.example/"}, nil)
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	s.AddTool(&mcp.Tool{
		Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`), Icons: []mcp.Icon{{Source: "https://evil.example/i.png"}},
	}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ask := &mcp.ElicitParams{Message: "Which?", RequestedSchema: json.RawMessage(oldForm)}
		if !modern {
			answer, err := r.Session.Elicit(ctx, ask)
			if err != nil {
				return text("error: " + err.Error()), nil
			}
			return text(fmt.Sprint(answer.Action, " ", answer.Content["theme"])), nil
		}
		if answer, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return text(fmt.Sprint(answer.Action, " ", answer.Content["theme"], " ", r.Params.RequestState)), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": ask}, RequestState: "state"}, nil
	})
	return s
}

// sdkFront puts a proxy in front of a handler, and returns its URL.
func sdkFront(t *testing.T, handler http.Handler) string {
	t.Helper()
	back := httptest.NewServer(handler)
	t.Cleanup(back.Close)
	upstream, err := url.Parse(back.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	config, err := policy.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	transport := proxy.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	p := &proxy.Proxy{Upstream: upstream, Transport: transport, CheckHost: true, Policy: func() *policy.Policy { return config }}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return front.URL + "/mcp"
}

func TestGoSDK(t *testing.T) {
	streamable := func(modern bool, o mcp.StreamableHTTPOptions) http.Handler {
		s := sdkServer(modern)
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &o)
	}
	sse := sdkServer(false)
	for name, c := range map[string]struct {
		handler http.Handler
		sse     bool
		want    string
	}{
		"stateful":          {streamable(false, mcp.StreamableHTTPOptions{}), false, "accept n"},
		"stateful, resumes": {streamable(false, mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}), false, "accept n"},
		"stateless":         {streamable(true, mcp.StreamableHTTPOptions{Stateless: true}), false, "accept n state"},
		"stateless, JSON":   {streamable(true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), false, "accept n state"},
		"HTTP+SSE":          {mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sse }, nil), true, "accept n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			at := sdkFront(t, c.handler)
			var mu sync.Mutex
			var shown string
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					schema, err := json.Marshal(r.Params.RequestedSchema)
					mu.Lock()
					defer mu.Unlock()
					shown = string(schema)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"theme": "n"}}, err
				},
			})
			var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: at}
			if c.sse {
				transport = &mcp.SSEClientTransport{Endpoint: at}
			}
			session, err := client.Connect(ctx, transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 1 || len(tools.Tools[0].Icons) != 0 {
				t.Fatalf("%+v, %v", tools, err)
			}
			for range 3 {
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
				if err != nil {
					t.Fatal(err)
				}
				if got := result.Content[0].(*mcp.TextContent).Text; strings.TrimSpace(got) != c.want {
					t.Errorf("the server got %q, want %q", got, c.want)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(shown, `"oneOf":[{`) || strings.Contains(shown, "enumNames") || !strings.Contains(shown, `"Night"`) {
				t.Errorf("the client was shown %s", shown)
			}
			if info := session.InitializeResult().ServerInfo; info.WebsiteURL != "" {
				t.Errorf("the client was given %s", info.WebsiteURL)
			}
		})
	}
}

// Clients don't get into each other's way:
// eight clients call at once, each in a session of its own, all with equal ids.
func TestGoSDKManyClients(t *testing.T) {
	s := sdkServer(false)
	at := sdkFront(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			answer := []string{"d", "n"}[i%2]
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"theme": answer}}, nil
				},
			})
			session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: at}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for range 5 {
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
				if err != nil {
					t.Error(err)
					return
				}
				if got := result.Content[0].(*mcp.TextContent).Text; got != "accept "+answer {
					t.Errorf("the server got %q, want %q", got, answer)
				}
			}
		})
	}
	wait.Wait()
}
