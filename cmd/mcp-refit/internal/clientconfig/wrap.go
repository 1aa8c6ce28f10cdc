package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options say how servers are wrapped.
type Options struct {
	Self    string   // our own path, absolute
	Flags   []string // for the proxy, each with its value: --icons=keep
	Servers []string // the names of those that are meant; empty: all
}

// A Result says what became of one server.
type Result struct {
	Table  string // where it stands, such as mcpServers
	Server string
	State  State
	Reason string // for Refused
}

// State is what became of a server, or what it is.
type State string

// The states.
const (
	Wrapped   State = "wrapped"   // it is, now
	Unwrapped State = "unwrapped" // it is as it was before, now
	Already   State = "unchanged" // it was so before
	Refused   State = "refused"   // it is left as it is, for a reason
)

// List says of each server in a file whether it is wrapped.
func List(text []byte, f Format) ([]Result, error) {
	servers, err := parse(text, f)
	if err != nil {
		return nil, err
	}
	var out []Result
	for i := range servers {
		s := &servers[i]
		r := s.result(Unwrapped, "")
		switch {
		case s.odd != "":
			r = s.result(Refused, s.odd)
		case s.ours():
			r = s.result(Wrapped, "")
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *server) result(state State, reason string) Result {
	return Result{Table: s.table, Server: s.name, State: state, Reason: reason}
}

// Wrap makes the servers of a file run through mcp-refit. Where nothing is to
// be done, the text is returned as it came. The error is of the whole file.
func Wrap(text []byte, f Format, o Options) ([]byte, []Result, error) {
	out, results, err := o.each(text, f, func(s *server) ([]edit, State, string) {
		if s.ours() {
			return nil, Already, ""
		}
		edits, reason := s.wrap(text, f.Syntax, o)
		if reason != "" {
			return nil, Refused, reason
		}
		return edits, Wrapped, ""
	})
	if err != nil || bytes.Equal(out, text) {
		return out, results, err
	}
	return out, results, undoes(out, text, f, results)
}

// undoes makes sure that what was wrapped can be unwrapped to the last byte.
func undoes(out, text []byte, f Format, results []Result) error {
	back, _, err := each(out, f, func(s *server) ([]edit, State, string) {
		if !s.ours() || !slices.Contains(results, s.result(Wrapped, "")) { // another may have its name
			return nil, Already, ""
		}
		edits, reason := s.unwrap(out, f.Syntax)
		return edits, Unwrapped, reason
	})
	if err != nil {
		return fmt.Errorf("it could not be read after wrapping: %w", err)
	}
	if !bytes.Equal(back, text) {
		return errors.New("it is written in a way that unwrap could not restore to the last byte")
	}
	return nil
}

// Unwrap takes mcp-refit out again. Each server is then as it was before Wrap,
// except for what was changed in it since, beside its command line.
func Unwrap(text []byte, f Format, o Options) ([]byte, []Result, error) {
	return o.each(text, f, func(s *server) ([]edit, State, string) {
		if !s.ours() {
			return nil, Already, ""
		}
		edits, reason := s.unwrap(text, f.Syntax)
		if reason != "" {
			return nil, Refused, reason
		}
		return edits, Unwrapped, ""
	})
}

// each does something to the servers that are meant.
func (o Options) each(text []byte, f Format, do func(*server) ([]edit, State, string)) ([]byte, []Result, error) {
	return each(text, f, func(s *server) ([]edit, State, string) {
		if len(o.Servers) > 0 && !slices.Contains(o.Servers, s.name) {
			return nil, "", ""
		}
		return do(s)
	})
}

func each(text []byte, f Format, do func(*server) ([]edit, State, string)) ([]byte, []Result, error) {
	servers, err := parse(text, f)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	var results []Result
	for i := range servers {
		s := &servers[i]
		add, state, reason := do(s)
		if state == "" {
			continue
		}
		if s.odd != "" {
			add, state, reason = nil, Refused, s.odd
		}
		edits = append(edits, add...)
		results = append(results, s.result(state, reason))
	}
	return apply(text, edits), results, nil
}

// wrap returns the edits that wrap a server, or the reason why not.
func (s *server) wrap(text []byte, in Syntax, o Options) ([]edit, string) {
	command := s.get("command")
	url, reason := s.address()
	switch {
	case reason != "":
		return nil, reason
	case command == nil && url == nil:
		return nil, "it has neither a command nor a URL"
	case command != nil && url != nil:
		return nil, fmt.Sprintf("it has both a command and %q", url.key)
	case url != nil:
		return s.wrapURL(text, in, o)
	case command.kind != stringValue || command.text == "":
		return nil, "its command is no string"
	}
	return s.wrapCommand(text, in, o)
}

// wrapCommand puts our command line in front of the server's. The command
// moves as it was written, so that it can be moved back.
func (s *server) wrapCommand(text []byte, in Syntax, o Options) ([]edit, string) {
	command, args := s.get("command"), s.get("args")
	front := append(quoteAll(o.Flags), quote("--"), command.value.of(text))
	edits := []edit{{command.value, quote(o.Self)}}
	switch {
	case args == nil:
		return append(edits, addArgs(text, in, command, front)), ""
	case args.kind != stringList || args.at == span{}:
		return nil, "its args are no list of strings"
	case len(args.parts) == 0:
		at := args.value.start + 1
		return append(edits, edit{span{at, at}, strings.Join(front, ", ")}), ""
	}
	at := args.parts[0].start
	return append(edits, edit{span{at, at}, strings.Join(front, ", ") + ", "}), ""
}

// addArgs adds the member args. Its elements have no space between them, which
// tells unwrap that the member was not there before.
func addArgs(text []byte, in Syntax, command *member, list []string) edit {
	elements := "[" + strings.Join(list, ",") + "]"
	if in == JSON {
		return edit{span{command.at.end, command.at.end}, `,"args":` + elements}
	}
	return edit{span{command.at.start, command.at.start}, "args = " + elements + lineBreak(text, command.at.start)}
}

// lineBreak is what stands between two lines at a place: the file's own line
// end, and the indentation of the line that holds the place.
func lineBreak(text []byte, at int) string {
	line := bytes.LastIndexByte(text[:at], '\n') + 1
	end := "\n"
	if n := bytes.IndexByte(text, '\n'); n > 0 && text[n-1] == '\r' {
		end = "\r\n"
	}
	return end + strings.TrimPrefix(string(text[line:at]), string(bom))
}

// ours reports whether a server runs through mcp-refit.
func (s *server) ours() bool {
	command := s.get("command")
	if command == nil || command.kind != stringValue {
		return false
	}
	base := command.text[strings.LastIndexAny(command.text, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "mcp-refit"
}

// unwrap returns the edits that unwrap a server of ours, or the reason why not.
func (s *server) unwrap(text []byte, in Syntax) ([]edit, string) {
	const byHand = "its command line is none that wrap writes; change it by hand"
	args := s.get("args")
	if args == nil || args.kind != stringList || (args.at == span{}) {
		return nil, byHand
	}
	if entry := s.wrappedEntry(); entry >= 0 {
		return s.unwrapURL(text, in, entry)
	}
	dash := slices.Index(args.list, "--")
	if dash < 0 || dash+1 == len(args.list) {
		return nil, byHand
	}
	command := s.get("command")
	edits := []edit{{command.value, args.parts[dash+1].of(text)}}
	if dash+2 < len(args.list) {
		return append(edits, edit{span{args.parts[0].start, args.parts[dash+2].start}, ""}), ""
	}
	if at, ok := addedArgs(text, in, command, args); ok {
		return append(edits, edit{at, ""}), ""
	}
	return append(edits, edit{span{args.parts[0].start, endOfList(text, args)}, ""}), ""
}

// addedArgs is the place of a member args that addArgs has added.
func addedArgs(text []byte, in Syntax, command, args *member) (span, bool) {
	for i := 1; i < len(args.parts); i++ {
		if text[args.parts[i-1].end] != ',' || args.parts[i-1].end+1 != args.parts[i].start {
			return span{}, false
		}
	}
	if in == JSON {
		between := span{command.at.end, args.value.start}
		if between.start > between.end || between.of(text) != `,"args":` {
			return span{}, false
		}
		return span{command.at.end, args.at.end}, true
	}
	between := span{args.at.end, command.at.start}
	if between.start > between.end || between.of(text) != lineBreak(text, args.at.start) {
		return span{}, false
	}
	return span{args.at.start, command.at.start}, true
}

// endOfList is the end of a list's last element, with a comma that a formatter
// has put behind it.
func endOfList(text []byte, list *member) int {
	end := list.parts[len(list.parts)-1].end
	rest := text[end:list.value.end]
	if n := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n")); rest[n] == ',' {
		return end + n + 1
	}
	return end
}
