package rewrite

import "testing"

func TestRefitEnumNames(t *testing.T) {
	got := RefitForm([]byte(`{"type":"object","properties":{"size": {"type":"string", "title":"Size","enum":["s","m"],"enumNames":["Small","Medium"],"default":"m"},"x":{ "type":"boolean"}}}`), Titled, DefaultRules)
	want := `{"type":"object","properties":{"size": {"type":"string", "title":"Size","oneOf":[{"const":"s","title":"Small"},{"const":"m","title":"Medium"}],"default":"m"},"x":{ "type":"boolean"}}}`
	if string(got.Schema) != want {
		t.Errorf("got %s\nwant %s", got.Schema, want)
	}
}
