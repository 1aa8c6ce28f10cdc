package rewrite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/rewrite"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The Go SDK's client refuses old forms, shows the refitted ones, and takes the
// answers to them.
func TestRefitGoClient(t *testing.T) {
	var content map[string]any
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	there, here := mcp.NewInMemoryTransports()
	server, err := here.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func() jsonrpc.Message {
		m, err := server.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	write := func(raw string) {
		m, err := jsonrpc.DecodeMessage([]byte(raw))
		if err == nil {
			err = server.Write(t.Context(), m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	connected := make(chan error, 1)
	var session *mcp.ClientSession
	go func() {
		var err error
		session, err = client.Connect(t.Context(), there, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		connected <- err
	}()
	hello := read().(*jsonrpc.Request)
	id, err := json.Marshal(hello.ID.Raw())
	if err != nil {
		t.Fatal(err)
	}
	write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, id))
	read() // notifications/initialized
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ask := func(n int, schema string) error {
		write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"m","requestedSchema":%s}}`, n, schema))
		return read().(*jsonrpc.Response).Error
	}
	w, forms := randomForms(t, 200)
	refused := 0
	for i, form := range forms {
		refitted := rewrite.RefitForm([]byte(form.schema), rewrite.Titled, rewrite.DefaultRules)
		content = nil
		if ask(2*i, form.schema) != nil {
			refused++
		}
		_, answer := w.answer(form, refitted.Schema, -1)
		if err := json.Unmarshal([]byte(answer), &content); err != nil {
			t.Fatal(err)
		}
		if err := ask(2*i+1, string(refitted.Schema)); err != nil {
			t.Fatalf("%s\nbecame %s\nwith the answer %s: %v", form.schema, refitted.Schema, answer, err)
		}
	}
	t.Logf("%d of %d were refused before", refused, len(forms))
	if refused < len(forms)/2 {
		t.Error("the forms are too easy to prove anything")
	}
}

// The clients of the TypeScript SDK show the refitted forms, titles and all.
func TestInteropRefitTypeScript(t *testing.T) {
	dir := interop(t, "node_modules")
	tests := []struct {
		name    string
		driver  []string
		dialect rewrite.Dialect
	}{
		{"1.32.2", []string{"accepts-v1.mjs"}, rewrite.Titled},
		{"2.4.0", []string{"accepts-v2.mjs"}, rewrite.Titled},
		{"2.4.0 legacy", []string{"accepts-v2.mjs", "legacy"}, rewrite.Titled},
		{"1.18.2", []string{"accepts-v1-18.mjs"}, rewrite.Named},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, all := randomForms(t, 1000)
			var in bytes.Buffer
			var forms, refitted []string
			for _, form := range all {
				several := false
				for _, f := range form.fields {
					several = several || f.several
				}
				if several && tt.dialect == rewrite.Named {
					continue // that revision has no form for it
				}
				now := string(rewrite.RefitForm([]byte(form.schema), tt.dialect, rewrite.DefaultRules).Schema)
				forms, refitted = append(forms, form.schema), append(refitted, now)
				fmt.Fprintf(&in, "%s\n%s\n", form.schema, now)
			}
			cmd := exec.CommandContext(t.Context(), "node", tt.driver...)
			cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			verdicts := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(verdicts) != 2*len(forms) {
				t.Fatalf("%d verdicts on %d forms", len(verdicts), 2*len(forms))
			}
			refused := 0
			for i := range forms {
				var before struct{ OK bool }
				var after verdict
				if json.Unmarshal([]byte(verdicts[2*i]), &before) != nil || json.Unmarshal([]byte(verdicts[2*i+1]), &after) != nil {
					t.Fatalf("no verdict: %s", verdicts[2*i+1])
				}
				if !before.OK {
					refused++
				}
				if !after.OK {
					t.Fatalf("%s\nbecame %s: %s", forms[i], refitted[i], after.Error)
				}
				var want formShape
				if err := json.Unmarshal([]byte(refitted[i]), &want); err != nil {
					t.Fatal(err)
				}
				if got := after.Schema.choices(); got != want.choices() {
					t.Fatalf("%s\nbecame %s\nof which the client shows %s, not %s", forms[i], refitted[i], got, want.choices())
				}
			}
			t.Logf("%d of %d were refused before", refused, len(forms))
			if refused < len(forms)/4 {
				t.Error("the forms are too easy to prove anything")
			}
		})
	}
}

type verdict struct {
	OK     bool
	Error  string
	Schema formShape
}

type formShape struct {
	Properties map[string]struct {
		Type      string
		Enum      []string
		EnumNames []string
		OneOf     []struct{ Const, Title string }
		Items     *struct {
			Type  string
			Enum  []string
			AnyOf []struct{ Const, Title string }
		}
	}
}

// choices is all that a user can choose from, with the titles.
func (s formShape) choices() string {
	out, _ := json.Marshal(s)
	return string(out)
}
