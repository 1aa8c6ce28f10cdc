// Package policy decides and does no I/O: what becomes of an icon, of a
// website's URL, of a form and of an answer, by a policy that a file and the
// command's flags state.
//
// # The policy
//
// Config is the policy file (YAML, version 1) as one Go struct. Its tags hold
// the keys, defaults, bounds, flags and sentences of documentation, and
// everything else is made from them by reflection: Default, Parse, Flags,
// Docs (the table for people) and Schema (the JSON Schema for editors), so
// that none of them can say something else. A Config knows where each value
// comes from (Config.Source, Show).
//
//	data := …                                       // the file, read by the caller
//	config, err := policy.Parse("policy.yaml", data)
//	err = config.SetFlag("icon-trust", "cdn.example.com")
//	p, err := config.For("github", command).Compile()
//
// A Policy is what a Config compiles to. It is immutable, so that a reload is
// the swap of one pointer, whole or not at all.
//
// The file is read strictly, and each error says file, line, column and what
// was meant. It is parsed by goccy/go-yaml, of which only the syntax tree is
// used: it knows the column of every key and value and of every syntax error.
// go.yaml.in/yaml/v3 gives a line at most for the latter, often the wrong
// one, and takes 0.4 ms at the start of every process for its tables, where
// goccy's takes 0.1 ms; in parsing they are alike.
//
// # Hosts
//
// One grammar reads every URL and every rule (splitURL, checkHost). It takes
// only what net/url and the WHATWG URL parser read alike, and refuses the
// rest: what two readers could read in two ways is stripped, never repaired.
// Wildcards are held to the public suffix list; names that mean something
// else on each network (single labels, .internal, .local and their like)
// count only where they are listed exactly; IP addresses never do.
//
// Decisions carry a reason for people, out of the one table in reason.go, and
// their zero value denies: a zero IconDecision strips, a zero AnswerDecision
// refuses, and so do a nil and a zero Icons.
//
// # Answers
//
// Answers checks an ElicitResult against the schema that the server asked
// with. See Answers.Decide.
package policy
