package rewrite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// find returns the paths of the carriers that an answer to method has.
func find(t *testing.T, method, raw string) (paths []string, err error) {
	t.Helper()
	env, scanErr := Scan([]byte(raw))
	if scanErr != nil {
		t.Fatalf("%s: %v", raw, scanErr)
	}
	sets, err := Icons([]byte(raw), env, Place{ToClient: true, Method: method})
	for _, s := range sets {
		paths = append(paths, s.Path())
	}
	return paths, err
}

// Ways to write a carrier that one reader sees and another does not.
func TestIconsHostileCarriers(t *testing.T) {
	const i = `"icons":[{"src":"https://x.example/i.png"}]`
	tests := []struct{ name, method, result, want string }{
		{"list twice", "tools/list", `"tools":[{` + i + `}],"tools":[{"name":"a"},{` + i + `}]`, "result.tools[0] result.tools[1]"},
		{"list in another case", "tools/list", `"Tools":[{` + i + `}]`, "result.tools[0]"},
		{"list with an escape", "tools/list", `"t\u006fols":[{` + i + `}]`, "result.tools[0]"},
		{"list with a long s", "tools/list", `"tool` + "\u017f" + `":[{` + i + `}]`, "result.tools[0]"},
		{"a Kelvin sign is no letter of ours", "tools/list", `"tools":[{"` + "\u212a" + `":1,` + i + `}]`, "result.tools[0]"},
		{"type after the icons", "tools/call", `"content":[{` + i + `,"type":"resource_link"}]`, "result.content[0]"},
		{"type twice", "tools/call", `"content":[{"type":"resource_link",` + i + `,"type":"text"}]`, "result.content[0]"},
		{"type in another case", "tools/call", `"content":[{"Type":"resource_link",` + i + `}]`, "result.content[0]"},
		{"type with an escape", "tools/call", `"content":[{"type":"resource\u005flink",` + i + `}]`, "result.content[0]"},
		{"a link as the content itself", "tools/call", `"content":{"type":"resource_link",` + i + `}`, "result.content"},
		{"links in a result of a tool", "prompts/get", `"messages":[{"content":[{"content":[{` + i + `,"type":"resource_link"}],"type":"tool_result"}]}]`, "result.messages[0].content[0].content[0]"},
		{"the same in a block of another type", "prompts/get", `"messages":[{"content":[{"content":[{` + i + `,"type":"resource_link"}],"type":"resource"}]}]`, ""},
		{"a link that is a tool's result too", "tools/call", `"content":[{"type":"tool_result","Type":"resource_link",` + i + `,"content":{"type":"resource_link",` + i + `}}]`, "result.content[0].content result.content[0]"},
		{"_meta twice", "tools/call", `"_meta":{"io.modelcontextprotocol/serverInfo":{` + i + `}},"_meta":{}`, "result._meta.io.modelcontextprotocol/serverInfo"},
		{"_meta of a task's result", "tasks/get", `"result":{"_meta":{"IO.modelcontextprotocol/serverinfo":{` + i + `}}}`, "result.result._meta.io.modelcontextprotocol/serverInfo"},
		{"sampling in a result", "tools/call", `"inputRequests":{"a":{"params":{"tools":[{` + i + `}],"messages":[{"content":{"type":"tool_result","content":[{"type":"resource_link",` + i + `}]}}]}}}`, "result.inputRequests.a.params.tools[0] result.inputRequests.a.params.messages[0].content.content[0]"},
		{"an answer to nothing that we know", "", `"tools":[{` + i + `}],"messages":[{"content":{"type":"resource_link",` + i + `}}]`, "result.tools[0] result.messages[0].content"},
		{"no list", "tools/list", `"tools":{"icons":[{"src":"a"}]}`, ""},
		{"a list in the list", "tools/list", `"tools":[[{` + i + `}]]`, ""},
	}
	for _, tt := range tests {
		got, err := find(t, tt.method, `{"jsonrpc":"2.0","id":1,"result":{`+tt.result+`}}`)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: found %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
}

// A link is found however deep it stands, and what is not looked at on the way
// costs nothing: blocks are walked once, not once a level.
func TestIconsDeep(t *testing.T) {
	const levels = MaxDepth/2 - 3
	raw := `{"jsonrpc":"2.0","id":1,"result":{"content":` +
		strings.Repeat(`[{"type":"tool_result","content":`, levels) + `[{"type":"resource_link","icons":[]}]` + strings.Repeat(`}]`, levels) + `}}`
	got, err := find(t, "tools/call", raw)
	if want := "result" + strings.Repeat(".content[0]", levels+1); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("found %q, %v", got, err)
	}
}

// More icons than are looked at are an error, whatever they are made of; as
// many are none. What only looks like icons does not count.
func TestIconsTooMany(t *testing.T) {
	list := func(element string, n int) string {
		return `[` + strings.Repeat(element+",", n-1) + element + `]`
	}
	members := func(member string, n int) string {
		return `{` + strings.Repeat(member+",", n-1) + member + `}`
	}
	half := MaxIcons / 2
	tests := []struct {
		name, method, result string
		full                 bool
	}{
		{"tools with an icon, as many as may be", "tools/list", `{"tools":` + list(`{"icons":[0]}`, half) + `}`, false},
		{"one more", "tools/list", `{"tools":` + list(`{"icons":[0]}`, half+1) + `}`, true},
		{"icons of one tool", "tools/list", `{"tools":[{"icons":` + list(`0`, MaxIcons) + `}]}`, true},
		{"no arrays", "tools/list", `{"tools":` + list(`{"icons":0}`, half+1) + `}`, true},
		{"one member again and again", "tools/list", `{"tools":[` + members(`"Icons":0`, MaxIcons+1) + `]}`, true},
		{"tools without", "tools/list", `{"tools":` + list(`{}`, MaxIcons+1) + `}`, false},
		{"icons in a text", "tools/call", `{"content":[{"icons":` + list(`0`, MaxIcons+1) + `,"type":"text"},{"icons":[0],"type":"resource_link"}]}`, false},
		{"links in what is no tool's result", "tools/call", `{"content":[{"content":` + list(`{"type":"resource_link","icons":[0]}`, MaxIcons) + `}]}`, false},
	}
	for _, tt := range tests {
		_, err := find(t, tt.method, `{"jsonrpc":"2.0","id":1,"result":`+tt.result+`}`)
		if errors.Is(err, ErrTooManyIcons) != tt.full {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Whatever a list holds, all that stands outside of its icons stays byte for byte.
func TestIconsNothingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for range 3000 {
		var in, out strings.Builder
		var places [][]Placement
		both := func(text string) { in.WriteString(text); out.WriteString(text) }
		both(`{"jsonrpc":"2.0","id":1,"result":{"a":1,` + pick("", " ", "\t") + `"tools":[`)
		for n := range r.IntN(5) {
			if n > 0 {
				both(pick(",", " , "))
			}
			both(`{` + pick(`"name":"t"`, `"inputSchema":{"properties":{"icons":{"x":[]}}}`, `"_meta":{"icons":[{"src":"a"}]}`, `"description":"\"icons\":[{}]"`))
			if r.IntN(4) > 0 {
				icons, place, left := randomIcons(r, pick)
				in.WriteString(`,"icons":` + icons)
				if left != "" {
					out.WriteString(`,"icons":` + left)
				}
				places = append(places, place)
			}
			both(pick("", `,"z":1e400`, `,"icon":[1]`, `,"é":"\ud800"`) + `}`)
		}
		both(`]` + pick("", `,"nextCursor":"icons"`) + `}}`)
		raw := []byte(in.String())
		env, err := Scan(raw)
		if err != nil {
			t.Fatal(err)
		}
		sets, err := Icons(raw, env, Place{ToClient: true, Method: "tools/list"})
		if err != nil || len(sets) != len(places) {
			t.Fatalf("%s\nfound %d, want %d (%v)", raw, len(sets), len(places), err)
		}
		var e Edits
		for i := range sets {
			sets[i].Edit(raw, &e, places[i], true)
		}
		if got := string(e.Apply(raw)); got != out.String() {
			t.Fatalf("of %s\n got %s\nwant %s", raw, got, out.String())
		}
	}
}

// randomIcons returns the value of icons, what becomes of each, and what is
// left of the value.
func randomIcons(r *rand.Rand, pick func(...string) string) (value string, place []Placement, left string) {
	var in, out []string
	for range 1 + r.IntN(4) {
		one := pick(`{"src":"https://a.example/i.png"}`, `{"x":{},"src":"u","theme":"dark"}`, `{"sizes":["1x1"],"src":"u","mimeType":"a/b"}`)
		in = append(in, one)
		switch r.IntN(3) {
		case 0:
			place = append(place, Placement{})
		case 1:
			place, out = append(place, Placement{Keep: true}), append(out, one)
		case 2:
			p := Placement{URI: fmt.Sprintf("data:image/png;base64,%04d", r.IntN(1e4)), Width: 1 + r.IntN(64), Height: 64}
			size := fmt.Sprintf(`["%dx%d"]`, p.Width, p.Height)
			src := `"src":"` + p.URI + `"`
			place = append(place, p)
			switch one[2] {
			case 'x':
				out = append(out, `{"x":{},`+src+`,"mimeType":"image/png","sizes":`+size+`,"theme":"dark"}`)
			default:
				if strings.HasPrefix(one, `{"sizes"`) {
					out = append(out, `{"sizes":`+size+`,`+src+`,"mimeType":"image/png"}`)
				} else {
					out = append(out, `{`+src+`,"mimeType":"image/png","sizes":`+size+`}`)
				}
			}
		}
	}
	if len(out) > 0 {
		left = `[` + strings.Join(out, ",") + `]`
	}
	return `[` + strings.Join(in, ",") + `]`, place, left
}
