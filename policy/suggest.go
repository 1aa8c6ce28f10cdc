package policy

import (
	"fmt"
	"strings"
)

// Suggest is a half sentence that names the candidate nearest to what was
// written, as the errors of this package end: `; did you mean "strip"?`. It is
// empty if none is near.
func Suggest(written string, candidates []string) string { return suggest(written, candidates) }

// suggest is a half sentence that names the candidate nearest to what was
// written, "" if none is near.
func suggest(written string, candidates []string) string {
	best, least := "", 1+max(1, len(written)/3)
	for _, c := range candidates {
		if d := distance(normal(written), normal(c)); d < least {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// normal takes away what is not a misspelling but another convention:
// fillDefaults and fill_defaults are fill-defaults.
func normal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '-' || c == '_' || c == ' ':
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// maxSuggest bounds the names that are compared, in bytes.
const maxSuggest = 64

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two names.
func distance(a, b string) int {
	if len(a) > maxSuggest || len(b) > maxSuggest {
		return maxSuggest
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// suggestKey is suggest for a key that a section does not have: one of the
// section's own, else one of another section or a flag of that name.
func suggestKey(key, path string, fields []Field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Path
	}
	if s := suggest(key, keys); s != "" {
		return s
	}
	if _, ok := ruleFlags[key]; ok {
		return `; did you mean "icons.rules"?`
	}
	for _, f := range Fields() {
		if f.Path != path+key && (normal(f.Key()) == normal(key) || f.Flag == key) {
			return fmt.Sprintf("; did you mean %q?", f.Path)
		}
	}
	return "; there are " + strings.Join(keys, ", ")
}

// suggestInside names the key of a section that a single value was perhaps
// meant for: the one that has the section's name as its flag.
func suggestInside(section string) string {
	for _, f := range Fields() {
		if f.Flag == section && strings.HasPrefix(f.Path, section+".") {
			return fmt.Sprintf("; did you mean %q?", f.Path)
		}
	}
	return ""
}
