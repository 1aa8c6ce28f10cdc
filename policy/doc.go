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
// with; see Answers.Decide. The check of its JSON Schema (draft 2020-12) is an
// evaluator of our own, because no library can be given a schema that a stranger
// wrote. Measured on two cores:
//
//   - google/jsonschema-go 0.4.3 starts in 0.4 ms, but {"$ref":"#/properties/p"}
//     inside p overflows its stack, which no recover stops: one answer ends the
//     process. It reads numbers as float64 (9007199254740992 meets a minimum of
//     9007199254740993, 0.3 is no multiple of 0.1), asserts no format, and stops
//     at the first failure.
//   - santhosh-tekuri/jsonschema/v6 6.0.3 is exact, asserts formats and reports
//     every failure, but compiles all metaschemas in init: 6 to 10 ms and 21,000
//     allocations before main, of the 20 ms in which the proxy is to be ready.
//   - Both refuse a whole schema for one keyword of the wrong type or one pattern
//     that does not compile, and neither can be stopped: 22 definitions that each
//     refer twice to the next take 8 s in the one and 11 s in the other.
//
// A guard in front would have to walk every keyword that the libraries walk, and
// would leave them little to do. So the second of them is what the tests compare
// this evaluator with, and an importer pays for neither.
//
// The evaluator's bounds: steps, nesting, values and bytes. A keyword that it
// cannot evaluate is not decided either way: the rest is checked, and the field
// is named as unchecked.
package policy
