package proxy

import (
	"slices"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// What the reference does with messages to the client.

const serverInfoKey = "io.modelcontextprotocol/serverInfo"

var questionNames = []string{"mode", "message", "requestedSchema", "url", "task"}

// question refits the form of an elicitation/create.
func (m *refMessage) question() {
	if m.kind != rewrite.KindRequest || m.own != "elicitation/create" {
		return
	}
	params, _ := get(m.top, "params")
	only(params, questionNames...)
	if !m.ask(params) {
		decline, _, _ := plant(resultMessage(text(m.id), []byte(`{"action":"decline"}`)))
		m.out = &refOutcome{reply: decline}
	}
}

// mode is the mode of a question.
func mode(params any) string {
	v, ok := get(params, "mode")
	if !ok || v == nil {
		return rewrite.ModeForm
	}
	s, isText := v.(string)
	if !isText {
		return "?"
	}
	return s
}

// ask refits one question. It reports false if the policy declines it.
func (m *refMessage) ask(params any) bool {
	schema, ok := get(params, "requestedSchema")
	switch mode(params) {
	case rewrite.ModeForm:
		var raw []byte
		if ok {
			raw = text(schema)
		}
		if !m.policy.Forms.DecideForm(raw).Allow {
			return false
		}
		if ok {
			params.(*tree).set("requestedSchema", m.refit(schema))
		}
	case rewrite.ModeURL:
		return m.allowURL(getText(params, "url"))
	}
	return true
}

func (m *refMessage) allowURL(url string) bool {
	return m.policy.Forms.DecideURL(policy.IconArgs{URL: url}).Allow
}

// refit turns enumNames into oneOf, where they are all that there is to do.
// What other rules may have a part in is left to RefitForm, whose own tests
// have a reference of theirs.
func (m *refMessage) refit(schema any) any {
	if titled, ok := titledEnums(schema); ok {
		return titled
	}
	v, _, _ := plant(rewrite.RefitForm(text(schema), rewrite.Titled, m.rules).Schema)
	return v
}

func titledEnums(schema any) (any, bool) {
	top, _ := schema.(*tree)
	properties, _ := get(schema, "properties")
	fields, _ := properties.(*tree)
	if top == nil || fields == nil || !hasOnly(top, "type", "properties", "required") || getText(top, "type") != "object" {
		return nil, false
	}
	out := new(tree)
	for _, field := range fields.members {
		one, _ := field.value.(*tree)
		if one == nil || !hasOnly(one, "type", "title", "enum", "enumNames") || getText(one, "type") != "string" {
			return nil, false
		}
		values, titles := plainTexts(one, "enum"), plainTexts(one, "enumNames")
		if len(values) == 0 || len(values) != len(titles) {
			return nil, false
		}
		var options []any
		for i := range values {
			options = append(options, &tree{[]branch{{"const", values[i]}, {"title", titles[i]}}})
		}
		kept := new(tree)
		for _, b := range one.members {
			if b.key == "type" || b.key == "title" {
				kept.members = append(kept.members, b)
			}
		}
		kept.set("oneOf", options)
		out.members = append(out.members, branch{field.key, kept})
	}
	titled := &tree{slices.Clone(top.members)}
	titled.set("properties", out)
	return titled, true
}

// hasOnly reports whether an object has no other members than those, each once.
func hasOnly(t *tree, names ...string) bool {
	seen := map[string]bool{}
	for _, m := range t.members {
		if !slices.Contains(names, m.key) || seen[m.key] {
			return false
		}
		seen[m.key] = true
	}
	return true
}

// plainTexts are the elements of a list of different words; nil if it is none.
func plainTexts(t *tree, name string) []string {
	v, _ := get(t, name)
	list, _ := v.([]any)
	var all []string
	for _, e := range list {
		s, _ := e.(string)
		if strings.TrimSpace(s) == "" || slices.Contains(all, s) {
			return nil
		}
		all = append(all, s)
	}
	return all
}

// inputRequests refits the questions in a result and says what is to be sealed.
func (m *refMessage) inputRequests() {
	if m.kind != rewrite.KindResult {
		return
	}
	result, _ := get(m.top, "result")
	if !only(result, "inputRequests") {
		return
	}
	only(result, "requestState")
	v, _ := get(result, "inputRequests")
	list, _ := v.(*tree)
	if list == nil {
		return
	}
	// Of two questions under one key the last counts, and each loses what could be read twice.
	kept := new(tree)
	for i, one := range list.members {
		if list.last(one.key) == i {
			kept.members = append(kept.members, one)
		}
	}
	list.members = kept.members
	seal := refSeal{}
	seal.serverState, seal.sent = get(result, "requestState")
	for i := range list.members {
		entry := list.members[i].value
		only(entry, "method", "params")
		params, _ := get(entry, "params")
		if _, isObject := params.(*tree); !isObject || getText(entry, "method") != "elicitation/create" {
			continue
		}
		only(params, questionNames...)
		if m.call == nil || !m.call.modern {
			continue
		}
		if !m.ask(params) {
			m.replaceError("-32600")
			return
		}
		_, hasSchema := get(params, "requestedSchema")
		if how := mode(params); how == rewrite.ModeForm || how == rewrite.ModeURL || hasSchema {
			seal.forms++
		}
	}
	if seal.forms > 0 {
		m.asks = &seal
		result.(*tree).set("requestState", sealedMark)
	}
}

// urlError looks at the URLs of an error that asks to open some.
func (m *refMessage) urlError() {
	if m.kind != rewrite.KindError || m.out != nil {
		return
	}
	fault, _ := get(m.top, "error")
	asks, allowed := false, true
	each(fault, "code", func(v any) { asks = asks || isNumber(text(v), codeURLRequired) })
	each(fault, "data", func(data any) {
		each(data, "elicitations", func(v any) {
			list, _ := v.([]any)
			for _, one := range list {
				each(one, "url", func(v any) {
					url, _ := v.(string)
					allowed = allowed && m.allowURL(url)
				})
			}
		})
	})
	if asks && !allowed {
		m.replaceError("-32600")
	}
}

// icons takes out the icons of all carriers.
func (m *refMessage) icons() {
	if m.out != nil {
		return
	}
	params, _ := get(m.top, "params")
	switch {
	case m.kind == rewrite.KindRequest && m.own == "sampling/createMessage":
		m.sampling(params)
	case m.kind == rewrite.KindResult:
		result, _ := get(m.top, "result")
		m.resultIcons(result)
	}
}

func (m *refMessage) resultIcons(result any) {
	is := func(methods ...string) bool { return m.call == nil || slices.Contains(methods, m.method) }
	each(result, "_meta", func(v any) { each(v, serverInfoKey, m.implementation) })
	each(result, "inputRequests", func(v any) {
		if requests, ok := v.(*tree); ok {
			for _, one := range requests.members {
				each(one.value, "params", m.sampling)
			}
		}
	})
	if is("initialize", "server/discover") {
		each(result, "serverInfo", m.implementation)
	}
	if is("tools/call", "tasks/result") {
		each(result, "content", m.blocks)
	}
	if is("prompts/get") {
		each(result, "messages", m.messages)
	}
	if is("tasks/get") {
		each(result, "result", func(v any) {
			each(v, "content", m.blocks)
			each(v, "_meta", func(v any) { each(v, serverInfoKey, m.implementation) })
		})
	}
	for method, name := range map[string]string{
		"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
	} {
		if is(method) {
			each(result, name, m.list)
		}
	}
}

func (m *refMessage) list(v any) {
	list, _ := v.([]any)
	for _, e := range list {
		strip(e)
	}
}

func (m *refMessage) sampling(v any) {
	each(v, "tools", m.list)
	each(v, "messages", m.messages)
}

func (m *refMessage) messages(v any) {
	list, _ := v.([]any)
	for _, e := range list {
		each(e, "content", m.blocks)
	}
}

func (m *refMessage) blocks(v any) {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, block := range list {
		var link, toolResult bool
		each(block, "type", func(v any) {
			link = link || v == "resource_link"
			toolResult = toolResult || v == "tool_result"
		})
		if toolResult {
			each(block, "content", m.blocks)
		}
		if link {
			strip(block)
		}
	}
}

// strip takes the icons out of a carrier. An empty list has none.
func strip(v any) {
	t, ok := v.(*tree)
	if !ok {
		return
	}
	only(t, "icons")
	if icons, there := get(t, "icons"); there {
		if list, isList := icons.([]any); !isList || len(list) > 0 {
			t.members = slices.Delete(t.members, t.last("icons"), t.last("icons")+1)
		}
	}
}

func (m *refMessage) implementation(v any) {
	strip(v)
	t, ok := v.(*tree)
	if !ok {
		return
	}
	only(t, "websiteUrl")
	if site, there := get(t, "websiteUrl"); there {
		url, isText := site.(string)
		if !isText || m.policy.Icons.DecideWebsite(policy.IconArgs{URL: url}).Verdict == policy.Strip {
			t.members = slices.Delete(t.members, t.last("websiteUrl"), t.last("websiteUrl")+1)
		}
	}
}
