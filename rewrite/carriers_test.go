package rewrite

import (
	"strings"
	"testing"
)

// Each carrier holds an icon whose URL says where it stands.
func TestIconsCarriers(t *testing.T) {
	const icon = `"icons":[{"src":"https://x.example/i.png"}]`
	client, server := true, false
	tests := []struct {
		name     string
		toClient bool
		method   string // of the request that a result answers
		raw      string
		want     string // paths of the carriers
	}{
		{"initialize", client, "initialize", `{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"s",@}}}`, "result.serverInfo"},
		{"modern _meta", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{@}}}}`, "result._meta.io.modelcontextprotocol/serverInfo"},
		{"tools", client, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"t",@}]}}`, "result.tools[1]"},
		{"resources", client, "resources/list", `{"jsonrpc":"2.0","id":1,"result":{"resources":[{@}]}}`, "result.resources[0]"},
		{"templates", client, "resources/templates/list", `{"jsonrpc":"2.0","id":1,"result":{"resourceTemplates":[{@}]}}`, "result.resourceTemplates[0]"},
		{"prompts", client, "prompts/list", `{"jsonrpc":"2.0","id":1,"result":{"prompts":[{@}]}}`, "result.prompts[0]"},
		{"link", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"t"},{"type":"resource_link",@}]}}`, "result.content[1]"},
		{"prompt message", client, "prompts/get", `{"jsonrpc":"2.0","id":1,"result":{"messages":[{"content":{"type":"resource_link",@}},{"content":[{"type":"resource_link",@}]}]}}`, "result.messages[0].content result.messages[1].content[0]"},
		{"legacy task", client, "tasks/result", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link",@}]}}`, "result.content[0]"},
		{"modern task", client, "tasks/get", `{"jsonrpc":"2.0","id":1,"result":{"result":{"content":[{"type":"resource_link",@}]}}}`, "result.result.content[0]"},
		{"task notification", client, "", `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"result":{"content":[{"type":"resource_link",@}]}}}`, "params.result.content[0]"},
		{"sampling", client, "", `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tools":[{@}],"messages":[{"content":[{"type":"tool_result","content":[{"type":"resource_link",@}]}]}]}}`, "params.tools[0] params.messages[0].content[0].content[0]"},
		{"input request", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"s":{"method":"sampling/createMessage","params":{"tools":[{@}]}}}}}`, "result.inputRequests.s.params.tools[0]"},
		{"unknown request", client, "", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{@}]}}`, "result.tools[0]"},
		{"other case on the way", client, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"Tools":[{@}],"tools":[{@}]}}`, "result.tools[0] result.tools[0]"},
		{"escaped on the way", client, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"t\u006fols":[{@}]}}`, "result.tools[0]"},
		{"client info", server, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{@}}}`, "params.clientInfo"},
		{"client info in _meta", server, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{@}}}}`, "params._meta.io.modelcontextprotocol/clientInfo"},

		{"structured content", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{@,"tools":[{@}]}}}`, ""},
		{"other block", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource",@}]}}`, ""},
		{"tools of a call", client, "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{@}]}}`, ""},
		{"input schema", client, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"inputSchema":{"properties":{@}}}]}}`, ""},
		{"vendor _meta", client, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"vendor/x":{@}}}}`, ""},
		{"arguments", server, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{@}}}`, ""},
		{"vendor method", client, "vendor/x", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{@}],"content":[{"type":"resource_link",@}]}}`, ""},
		{"error data", client, "tools/list", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"tools":[{@}]}}}`, ""},
	}
	for _, tt := range tests {
		raw := []byte(strings.ReplaceAll(tt.raw, "@", icon))
		env, err := Scan(raw)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var got []string
		sets, err := Icons(raw, env, Place{tt.toClient, tt.method})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sets {
			if len(s.Icons) != 1 || s.Icons[0].Src != "https://x.example/i.png" || s.Icons[0].Bad != "" {
				t.Errorf("%s: icons %+v", tt.name, s.Icons)
			}
			got = append(got, s.Path())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestIconEdit(t *testing.T) {
	keep, strip := Placement{Keep: true}, Placement{}
	inline := Placement{URI: "data:image/png;base64,AA==", Width: 64, Height: 64}
	tests := []struct {
		name  string
		tool  string // the carrier
		place []Placement
		want  string
	}{
		{"kept", `{"name":"t","icons":[{"src":"u","sizes":["1x1"],"theme":"dark","x":1}]}`, []Placement{keep}, `{"name":"t","icons":[{"src":"u","sizes":["1x1"],"theme":"dark","x":1}]}`},
		{"stripped", `{"name":"t","icons":[{"src":"u"}],"z":1}`, []Placement{strip}, `{"name":"t","z":1}`},
		{"one of two", `{"icons":[{"src":"u"}, {"src":"v"}]}`, []Placement{strip, keep}, `{"icons":[{"src":"v"}]}`},
		{"inlined", `{"icons":[{"theme":"dark","src":"u"}]}`, []Placement{inline}, `{"icons":[{"theme":"dark","src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["64x64"]}]}`},
		{"inlined over", `{"icons":[{"src":"u","sizes":"48x48","mimeType":"image/svg+xml","theme":"auto"}]}`, []Placement{inline}, `{"icons":[{"src":"data:image/png;base64,AA==","sizes":["64x64"],"mimeType":"image/png"}]}`},
		{"sizes as one string", `{"icons":[{"src":"u","sizes":"48x48 96x96"}]}`, []Placement{keep}, `{"icons":[{"src":"u","sizes":["48x48","96x96"]}]}`},
		{"nulls", `{"icons":[{"src":"u","sizes":null,"theme":null,"mimeType":null}]}`, []Placement{keep}, `{"icons":[{"src":"u"}]}`},
		{"sizes of numbers", `{"icons":[{"src":"u","sizes":[48]}]}`, []Placement{keep}, `{"icons":[{"src":"u"}]}`},
		{"unknown theme", `{"icons":[{"theme":"auto","src":"u"}]}`, []Placement{keep}, `{"icons":[{"src":"u"}]}`},
		{"null", `{"name":"t","icons":null}`, nil, `{"name":"t"}`},
		{"object", `{"icons":{"src":"u"},"name":"t"}`, nil, `{"name":"t"}`},
		{"string", `{"icons":"u"}`, nil, `{}`},
		{"empty stays", `{"icons":[]}`, nil, `{"icons":[]}`},
		{"twice", `{"icons":[{"src":"a"}],"name":"t","icons":[{"src":"b"}]}`, []Placement{keep}, `{"name":"t","icons":[{"src":"b"}]}`},
		{"other case", `{"Icons":[{"src":"a"}],"ICONS":1,"name":"t"}`, nil, `{"name":"t"}`},
		{"long s", `{"icon` + "\u017f" + `":[{"src":"a"}],"name":"t"}`, nil, `{"name":"t"}`},
		{"escaped", `{"\u0069cons":[{"src":"a"}]}`, []Placement{keep}, `{"\u0069cons":[{"src":"a"}]}`},
	}
	for _, tt := range tests {
		raw := []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tt.tool + `]}}`)
		env, err := Scan(raw)
		if err != nil {
			t.Fatal(err)
		}
		var e Edits
		sets, _ := Icons(raw, env, Place{true, "tools/list"})
		for _, s := range sets {
			if len(s.Icons) != len(tt.place) {
				t.Fatalf("%s: %d icons", tt.name, len(s.Icons))
			}
			s.Edit(raw, &e, tt.place, true)
		}
		if got, want := string(e.Apply(raw)), `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+tt.want+`]}}`; got != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, want)
		}
	}
}

func TestIconBad(t *testing.T) {
	tests := []struct{ entry, bad string }{
		{`null`, "not an object"}, {`"u"`, "not an object"}, {`[{"src":"u"}]`, "not an object"},
		{`{}`, "no src"}, {`{"` + "\u017f" + `rc":"u"}`, "src is written twice or in another case"},
		{`{"src":"https://evil/","Src":"https://cdn.example.com/"}`, "src is written twice or in another case"},
		{`{"src":"a","src":"b"}`, "src is written twice or in another case"},
		{`{"src":"a","s\u0072c":"b"}`, "src is written twice or in another case"},
		{`{"src":1}`, "src is not a string"}, {`{"src":null}`, "src is not a string"},
		{`{"src":"a","sizes":1,"Sizes":2}`, "sizes is written twice or in another case"},
	}
	for _, tt := range tests {
		if got, _ := (&carriers{raw: []byte(tt.entry)}).icon(0); got.Bad != tt.bad {
			t.Errorf("%s: %q, want %q", tt.entry, got.Bad, tt.bad)
		}
	}
}

func TestWebsite(t *testing.T) {
	tests := []struct{ info, url, bad, stripped string }{
		{`{"websiteUrl":"https://x.example/"}`, "https://x.example/", "", `{}`},
		{`{"name":"s","websiteUrl":7}`, "", "websiteUrl is not a string", `{"name":"s"}`},
		{`{"websiteUrl":"a","name":"s","websiteUrl":"b","WebsiteURL":"c"}`, "b", "", `{"name":"s"}`},
	}
	for _, tt := range tests {
		raw := []byte(`{"jsonrpc":"2.0","id":1,"result":{"serverInfo":` + tt.info + `}}`)
		env, _ := Scan(raw)
		s, _ := Icons(raw, env, Place{true, "initialize"})
		if len(s) != 1 || s[0].Website.URL != tt.url || s[0].Website.Bad != tt.bad {
			t.Errorf("%s: %+v", tt.info, s)
			continue
		}
		var e Edits
		s[0].Edit(raw, &e, nil, false)
		if got := string(e.Apply(raw)); got != `{"jsonrpc":"2.0","id":1,"result":{"serverInfo":`+tt.stripped+`}}` {
			t.Errorf("%s: stripped to %s", tt.info, got)
		}
	}
}
