package rewrite

import "testing"

func TestEditsRemove(t *testing.T) {
	raw := []byte(`{ "a":1 , "b":[1, 2,3] ,"c":{} }`)
	at := map[string]Span{}
	for m := range Members(raw, Span{0, len(raw)}) {
		at[m.Key] = m.At
	}
	var elems []Span
	for e := range Elements(raw, Span{14, 22}) {
		elems = append(elems, e)
	}
	tests := []struct {
		name   string
		remove []Span
		want   string
	}{
		{"first", []Span{at["a"]}, `{ "b":[1, 2,3] ,"c":{} }`},
		{"middle", []Span{at["b"]}, `{ "a":1 , "c":{} }`},
		{"last", []Span{at["c"]}, `{ "a":1 , "b":[1, 2,3]  }`},
		{"last two", []Span{at["c"], at["b"]}, `{ "a":1  }`},
		{"first and last", []Span{at["a"], at["c"]}, `{ "b":[1, 2,3]  }`},
		{"all", []Span{at["a"], at["b"], at["c"]}, `{  }`},
		{"elements", []Span{elems[0], elems[2]}, `{ "a":1 , "b":[2] ,"c":{} }`},
		{"inside a removed one", []Span{elems[0], at["b"]}, `{ "a":1 , "c":{} }`},
	}
	for _, tt := range tests {
		var e Edits
		for _, s := range tt.remove {
			e.Remove(s)
		}
		if got := string(e.Apply(raw)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestEditsMixed(t *testing.T) {
	raw := []byte(`{"a":1,"b":2}`)
	var e Edits
	b, _ := Get(raw, Span{0, len(raw)}, "b")
	a, _ := Get(raw, Span{0, len(raw)}, "a")
	e.Remove(b.At)
	e.Replace(a.Value, []byte(`"one"`))
	e.Prepend(raw, Span{0, len(raw)}, []byte(`"z":0`))
	if got, want := string(e.Apply(raw)), `{"z":0,"a":"one"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var all Edits
	all.Prepend(raw, Span{0, len(raw)}, []byte(`"z":0`))
	all.Remove(a.At)
	all.Remove(b.At)
	if got, want := string(all.Apply(raw)), `{"z":0}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	empty := []byte(`{ }`)
	var e2 Edits
	e2.Prepend(empty, Span{0, 3}, []byte(`"z":0`))
	if got, want := string(e2.Apply(empty)), `{"z":0 }`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestApplyNothing(t *testing.T) {
	raw := []byte(`{"a":1}`)
	if got := new(Edits).Apply(raw); &got[0] != &raw[0] {
		t.Error("a message without edits was copied")
	}
}
