package rewrite_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// valid asks a JSON Schema validator that is none of ours.
func valid(t *testing.T, schema, content string) bool {
	t.Helper()
	var s *jsonschema.Schema
	var v any
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatalf("%v: %s", err, schema)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%v: %s", err, schema)
	}
	if err := json.Unmarshal([]byte(content), &v); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	return resolved.Validate(v) == nil
}

// An answer that was valid for the server's own schema is valid after the way
// through the refitted form, in the server's own text, and one that was not is not.
func TestRefitRoundTrip(t *testing.T) {
	w, forms := randomForms(t, 300)
	for i, form := range forms {
		refitted := rewrite.RefitForm([]byte(form.schema), rewrite.Dialect(i%2), rewrite.DefaultRules)
		server, client := w.answer(form, refitted.Schema, -1)
		if got := string(refitted.Restore([]byte(client))); !valid(t, form.schema, got) || !sameAnswer(server, got) {
			t.Fatalf("%s\nwas shown as %s\nthe answer %s became %s, want %s", form.schema, refitted.Schema, client, got, server)
		}
		wrong := w.IntN(len(form.fields))
		server, client = w.answer(form, refitted.Schema, wrong)
		if valid(t, form.schema, server) {
			t.Fatalf("%s allows %s", form.schema, server)
		}
		if got := refitted.Restore([]byte(client)); valid(t, form.schema, string(got)) {
			t.Fatalf("%s\nwas shown as %s\nthe answer %s became %s, which is valid", form.schema, refitted.Schema, client, got)
		}
	}
}

// sameAnswer compares two answers by the text of their values.
func sameAnswer(a, b string) bool {
	var x, y map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil || len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if !bytes.Equal(v, y[k]) {
			return false
		}
	}
	return true
}
