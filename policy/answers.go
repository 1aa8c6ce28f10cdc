package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Outcome is what becomes of an answer. Its zero value refuses.
type Outcome uint8

const (
	Refuse  Outcome = iota // an error in the answer's place
	Pass                   // the answer goes to the server
	Cancel                 // the server is told that the user cancelled
	Decline                // the server is told that the user declined
	Retry                  // the client is asked again
)

var outcomeNames = [...]string{Refuse: "error", Pass: "pass", Cancel: "cancel", Decline: "decline", Retry: "retry"}

// String returns the outcome's name in the policy file and the flags.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText returns the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome by its name: error, cancel, decline, retry or pass.
func (o *Outcome) UnmarshalText(text []byte) error {
	for i, name := range outcomeNames {
		if string(text) == name {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("%s is not one of error, cancel, decline, retry, pass", quote(string(text)))
}

// Answers is the policy on ElicitResults. Its zero value checks every answer,
// alters none and refuses what does not fit the form.
type Answers struct {
	// OnInvalid is the outcome for an answer that has a problem. Pass lets all of
	// them through, also those that two readers could read in two ways.
	OnInvalid Outcome

	// FillDefaults gives a field that the client left out its default, before the
	// check: falsy defaults too, but never null and never one that is not valid.
	FillDefaults bool

	// Coerce lists the alterations of an invalid answer that are allowed.
	Coerce Coerce

	// RejectAsDecline reads the action reject, which some clients send, as decline.
	RejectAsDecline bool

	// DropDeclinedContent removes the content of a decline or a cancel.
	DropDeclinedContent bool

	// DropURLContent removes the content of an answer to a URL-mode request.
	DropURLContent bool
}

// NewAnswers returns the policy that the policy file states. An outcome that is
// none refuses.
func NewAnswers(c AnswersConfig) *Answers {
	a := &Answers{
		FillDefaults:        c.FillDefaults,
		Coerce:              Coerce(c.Coerce),
		RejectAsDecline:     c.RejectAsDecline,
		DropDeclinedContent: c.DropDeclinedContent,
		DropURLContent:      c.DropURLContent,
	}
	if err := a.OnInvalid.UnmarshalText([]byte(c.OnInvalid)); err != nil {
		a.OnInvalid = Refuse
	}
	return a
}

// Coerce is the set of alterations that may make an invalid answer valid. A value
// that passes the check is never altered, and one that stays invalid is left as it is.
type Coerce struct {
	Strings        bool // "5" to 5 and "true" to true, where the text is exactly that value
	Titles         bool // an option's title to its value, where one option alone has that title
	DropEmpty      bool // "" and null, left out of a field that is not required
	DropUndeclared bool // fields that the server did not ask for, left out
}

// Problem is one reason why an answer does not fit the form.
type Problem struct {
	// Field is the field's name; a field inside an object is named "object.field".
	// It is "action" or "content" where the problem is the answer itself.
	Field string

	// Rule is the keyword of JSON Schema that failed, or one of: action, content,
	// duplicate, case, encoding, size.
	Rule string

	// Message is a sentence for people. It begins with the field and quotes at most
	// 100 bytes of the answer, and nothing of what looks like a secret.
	Message string
}

// Applied is one alteration of an answer, for the audit.
type Applied struct {
	Field string
	Rule  string // default, string, title, empty, undeclared or reject
}

// AnswerDecision is what Decide found. Its zero value refuses.
type AnswerDecision struct {
	Outcome  Outcome
	Action   string    // accept, decline or cancel; else what the client sent, quoted and cut
	Problems []Problem // every failing field and rule, 100 at most

	// Unchecked names what could not be checked, each with its reason: a remote
	// $ref, a pattern that does not compile, a schema that is no schema.
	Unchecked []string

	// Content replaces the answer's content where defaults were filled or values
	// were coerced; nil leaves it as it came.
	Content []byte
	Applied []Applied

	// DropContent says that the content is to be removed, ReplaceAction that Action
	// stands for another action that the client sent.
	DropContent   bool
	ReplaceAction bool
}

// Bounds on what a decision says.
const (
	maxProblems  = 100
	maxUnchecked = 32
)

// Decide checks the ElicitResult result, as the client sent it, against schema,
// the requestedSchema that the server sent, and says what becomes of it. Both may
// be hostile. An empty schema asks for nothing. Decline and cancel are not checked.
//
// Where two readers could see two answers (a member given twice, or in another
// case), the answer has a problem.
func (a *Answers) Decide(schema, result []byte) AnswerDecision {
	answer, d := a.readAnswer(result)
	if len(d.Problems) == 0 {
		if d.Action == "accept" {
			a.decideAccept(schema, answer, &d)
		} else {
			d.DropContent = a.DropDeclinedContent && hasContent(answer)
		}
	}
	return a.concluded(d)
}

// DecideURL decides on the ElicitResult of a URL-mode request, which has no
// schema: its action alone is checked.
func (a *Answers) DecideURL(result []byte) AnswerDecision {
	answer, d := a.readAnswer(result)
	d.DropContent = a.DropURLContent && hasContent(answer)
	return a.concluded(d)
}

func (a *Answers) concluded(d AnswerDecision) AnswerDecision {
	d.Outcome = Pass
	if len(d.Problems) > 0 {
		d.Outcome = a.OnInvalid
	}
	return d
}

// readAnswer parses an ElicitResult as far as its members.
func (a *Answers) readAnswer(result []byte) (answer *value, d AnswerDecision) {
	answer, err := parseTop(result)
	switch {
	case err != nil:
		d.problem("action", "encoding", "the answer "+err.Error())
		return nil, d
	case answer.kind != kindObject:
		d.problem("action", "type", "the answer is not an object")
		return nil, d
	}
	d.ambiguous(answer, "action")
	action := answer.get("action")
	switch {
	case action == nil:
		d.problem("action", "required", "is missing, it has to be accept, decline or cancel")
	case action.is("accept"), action.is("decline"), action.is("cancel"):
		d.Action = action.text
	case action.is("reject") && a.RejectAsDecline:
		d.Action, d.ReplaceAction = "decline", true
		d.Applied = append(d.Applied, Applied{"action", "reject"})
	default:
		d.Action = clip(action.text)
		d.problem("action", "action", quoteValue(action)+" is not one of accept, decline, cancel")
	}
	return answer, d
}

// ambiguous reports a member of the answer that readers could disagree about:
// JavaScript reads the last of two, others the first, and Go's encoding/json
// takes "Action" for "action".
func (d *AnswerDecision) ambiguous(answer *value, name string) {
	exact := 0
	for _, m := range answer.members {
		switch {
		case m.name == name:
			exact++
		case strings.EqualFold(m.name, name):
			d.problem(name, "case", fmt.Sprintf("is also spelled %s", quote(m.name)))
		}
	}
	if exact > 1 {
		d.problem(name, "duplicate", "is there more than once")
	}
}

func (d *AnswerDecision) problem(field, rule, what string) {
	if len(d.Problems) < maxProblems {
		d.Problems = append(d.Problems, Problem{field, rule, field + ": " + what})
	}
}

func hasContent(answer *value) bool {
	return answer != nil && contentMember(answer) != nil
}

// contentMember returns the last member that some reader takes for the content.
func contentMember(answer *value) *member {
	for i := len(answer.members) - 1; i >= 0; i-- {
		if strings.EqualFold(answer.members[i].name, "content") {
			return &answer.members[i]
		}
	}
	return nil
}

func (a *Answers) decideAccept(schema []byte, answer *value, d *AnswerDecision) {
	d.ambiguous(answer, "content")
	content, problem := readContent(answer)
	if problem != nil {
		d.Problems = append(d.Problems, *problem)
	}
	if len(d.Problems) > 0 {
		return
	}
	f := newForm(schema)
	d.Content, d.Applied = a.alter(f, content)
	if d.Content != nil {
		var err error
		if content, err = parseValue(d.Content); err != nil {
			// The edit made what it must not: the answer stays as it came.
			d.Content, d.Applied = nil, nil
			d.problem("content", "encoding", err.Error())
			return
		}
		if answer.get("content") != nil && bytes.Equal(d.Content, answer.get("content").raw) {
			d.Content = nil
		}
	}
	d.Problems, d.Unchecked = f.check(content)
}

// readContent parses the content of an accept; one that is left out is empty.
func readContent(answer *value) (*value, *Problem) {
	given := answer.get("content")
	if given == nil {
		return &value{kind: kindObject, raw: []byte("{}")}, nil
	}
	content, err := parseValue(given.raw)
	switch {
	case errors.Is(err, errTooDeep), errors.Is(err, errTooMany):
		return nil, &Problem{"content", "size", "content: " + err.Error()}
	case err != nil:
		return nil, &Problem{"content", "encoding", "content: " + err.Error()}
	case content.kind != kindObject:
		return nil, &Problem{"content", "type", "content: " + nouns[content.kind] + " was sent, an answer's content is an object"}
	}
	return content, nil
}

// Apply returns result as d says: its content replaced, added or removed, its
// action replaced. Every other byte stays; where nothing changes, result itself is returned.
func (d AnswerDecision) Apply(result []byte) []byte {
	if d.Content == nil && !d.DropContent && !d.ReplaceAction {
		return result
	}
	answer, err := parseTop(result)
	if err != nil || answer.kind != kindObject {
		return result
	}
	var e objectEdit
	for i, m := range answer.members {
		switch {
		case d.DropContent && strings.EqualFold(m.name, "content"):
			e.drop(i)
		case d.Content != nil && m.name == "content":
			e.replace(i, d.Content)
		case d.ReplaceAction && m.name == "action":
			e.replace(i, []byte(`"`+d.Action+`"`))
		}
	}
	if d.Content != nil && answer.get("content") == nil {
		e.add([]byte(`"content"`), d.Content)
	}
	return append(append(bytes.Clone(result[:answer.start]), e.apply(answer)...), result[answer.start+len(answer.raw):]...)
}
