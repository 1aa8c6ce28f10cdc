package proxy

import "testing"

func TestCanonicalID(t *testing.T) {
	same := [][]string{
		{`1`, `1.0`, `1e0`, `10e-1`},
		{`0`, `-0`, `0.0`},
		{`-7`, `-7.0`},
		{`"1"`, `"\u0031"`},
		{`"a\"b"`, `"a\u0022b"`},
		{`"a\""`},
		{`"é"`, `"\u00e9"`},
		{`""`},
		{`"1.0"`},
		{`1.5`},
		{`9007199254740993`},
		{`9007199254740992`},
		{``},
	}
	seen := map[string]int{}
	for i, ids := range same {
		for _, id := range ids {
			c := canonicalID([]byte(id))
			if j, there := seen[c]; there && i != j {
				t.Errorf("%s is taken for %s", id, same[j][0])
			}
			seen[c] = i
			if first := canonicalID([]byte(ids[0])); c != first {
				t.Errorf("%s is %s, and %s is %s", id, c, ids[0], first)
			}
			if plain := plainID([]byte(id)); plain != nil && string(plain) != c {
				t.Errorf("%s is %s, and plainly %s", id, c, plain)
			}
		}
	}
}

// An answer finds its request, however its id is written.
func TestCallsAnswered(t *testing.T) {
	var c calls
	for _, id := range []string{`1`, `"1"`, `"\""`, `-2`} {
		c.add(callKey{ToServer, canonicalID([]byte(id))}, &call{id: []byte(id)})
	}
	for asked, answered := range map[string]string{`1`: `1.0`, `"1"`: `"1"`, `"\""`: `"\u0022"`, `-2`: `-2`} {
		if one := c.answered(ToClient, []byte(answered)); one != nil {
			t.Errorf("%s finds a request in the other direction", answered)
		}
		if one := c.answered(ToServer, []byte(answered)); one == nil || string(one.id) != asked {
			t.Errorf("%s finds %v, want %s", answered, one, asked)
		}
	}
	if len(c.open) != 0 || c.bytes != 0 {
		t.Errorf("%d left, of %d bytes", len(c.open), c.bytes)
	}
}
