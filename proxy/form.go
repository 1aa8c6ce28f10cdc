package proxy

import (
	"bytes"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A form is what is kept of a question until its answer comes.
type form struct {
	schema  []byte // the server's own requestedSchema; nil if it sent none
	dialect rewrite.Dialect
	rules   rewrite.Rules
	url     bool   // it is of mode url, and its answer has no content to check
	task    bool   // it may be answered with a task first (2025-11-25)
	request []byte // as the client was asked; kept only where it may be asked again
	tries   int    // how often it was asked again
}

// size is about how many bytes a form keeps.
func (f *form) size() int { return len(f.schema) + len(f.request) }

// restore turns content back to the server's own types.
func (f *form) restore(content []byte) []byte {
	return rewrite.RefitForm(f.schema, f.dialect, f.rules).Restore(content)
}

// rules are the schema rules that are in force for this message's client. For
// formats and defaults, auto is on: clients of both dialects refuse the form,
// and where those of 2025-06-18 don't, the rule itself lets it be.
func (m *message) rules() rewrite.Rules {
	c := &m.policy.Config.Schemas
	enums := m.policy.Config.Enums != policy.EnumsNever
	var on rewrite.Rules
	for rule, is := range map[rewrite.Rules]bool{
		rewrite.RuleEnumNames:       c.EnumNames && enums,
		rewrite.RuleItemEnumNames:   c.ItemEnumNames && enums,
		rewrite.RuleMissingType:     c.MissingType,
		rewrite.RuleAnyOf:           c.AnyOf && enums,
		rewrite.RuleItemOneOf:       c.ItemOneOf && enums,
		rewrite.RuleNullable:        c.Nullable,
		rewrite.RuleLocalRef:        c.LocalRef,
		rewrite.RuleConst:           c.Const,
		rewrite.RuleTypedEnums:      c.TypedEnums && enums,
		rewrite.RuleFormats:         c.Formats != policy.SwitchOff,
		rewrite.RuleDefaults:        c.Defaults != policy.SwitchOff,
		rewrite.RuleEnumBesideOneOf: c.EnumBesideOneOf && enums,
		rewrite.RuleOptions:         c.Options && enums,
	} {
		if is {
			on |= rule
		}
	}
	return on
}

// refit brings the schema of one question into the form that the client shows,
// and returns what is to be kept of it. The edit is added to the message.
func (m *message) refit(q rewrite.Question) *form {
	f := &form{dialect: m.dialect(), rules: m.rules()}
	schema := q.Schema.Of(m.raw)
	if len(schema) == 0 {
		return f
	}
	f.schema = bytes.Clone(schema)
	refitted := rewrite.RefitForm(schema, f.dialect, f.rules)
	if !same(refitted.Schema, schema) {
		m.edits.Replace(q.Schema, refitted.Schema)
	}
	if m.policy.Config.Observe {
		f.rules = 0 // the client answers the server's own schema
	}
	for _, c := range refitted.Changes {
		m.decide(Decision{
			Path: propertyPath(q, c), Rule: c.Rule, Verdict: VerdictRewritten, Reason: c.Reason,
			Before: schema, After: refitted.Schema,
		})
	}
	for _, c := range refitted.Warnings {
		m.decide(Decision{Path: propertyPath(q, c), Rule: c.Rule, Verdict: VerdictUnchecked, Reason: c.Reason})
	}
	return f
}

func propertyPath(q rewrite.Question, c rewrite.Change) string {
	path := q.Path + ".requestedSchema"
	if c.Property == "" {
		return path
	}
	return path + ".properties." + c.Property
}

// refitForm handles a request elicitation/create: its schema is refitted, and
// what its answer is to be checked against is remembered with it. If it can't
// be remembered, it is refused to the server instead of passing unchecked.
func (m *message) refitForm() {
	if m.env.Kind != rewrite.KindRequest || m.env.Method != "elicitation/create" {
		return
	}
	questions := rewrite.FindQuestions(m.raw, m.env)
	if m.surplus(questions.Surplus); m.out != nil {
		return
	}
	q := questions.List[0]
	one := m.newCall()
	m.watch(one)
	one.form, _ = m.ask(q)
	if m.out != nil && !m.policy.Config.Observe {
		return
	}
	if one.form != nil {
		one.form.task = !q.Task.Empty()
		if m.policy.Answers.OnInvalid == policy.Retry {
			one.form.request = bytes.Clone(m.edits.Apply(m.raw))
		}
	}
	s := m.session
	s.mu.Lock()
	full := s.calls.full(m.policy, one)
	if !full {
		s.calls.add(callKey{ToClient, canonicalID(one.id)}, one)
	}
	s.mu.Unlock()
	if full {
		m.decide(Decision{Path: "params", Rule: "form", Verdict: VerdictRefused, Reason: "too many requests are in flight in this session"})
		m.refuse(codeInvalidRequest, textCallsFull)
	}
}
