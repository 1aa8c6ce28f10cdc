package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// A Proxy is an http.Handler that another program can mount in front of a
// server. Here the server asks with an enum of an old shape, and the client
// is shown the current one.
func ExampleProxy() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Which?",`+
			`"requestedSchema":{"type":"object","properties":{"theme":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]}}}}}`+"\n\n")
	}))
	defer server.Close()
	upstream, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		fmt.Println(err)
		return
	}
	compiled, err := policy.Default().Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &proxy.Proxy{
		Upstream: upstream,
		Policy:   func() *policy.Policy { return compiled },
	}
	front := httptest.NewServer(p) // or http.Handle("/mcp", p)
	defer front.Close()

	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet"}}`
	res, err := http.Post(front.URL+"/mcp", "application/json", strings.NewReader(call))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, schema, _ := strings.Cut(strings.TrimSpace(string(answer)), `"theme":`)
	fmt.Println(strings.TrimSuffix(schema, "}}}}"))
	// Output:
	// {"type":"string","oneOf":[{"const":"d","title":"Day"},{"const":"n","title":"Night"}]}
}
