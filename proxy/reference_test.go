package proxy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// The reference does what handle does under the policy that strips all icons,
// in the slowest and most obvious way: it decodes the whole message with
// encoding/json, changes the tree, and knows no offsets, no bits of keys that
// were seen and no edits. Tasks are not in it.

// A tree is an object with all its members in order, duplicates too.
type tree struct{ members []branch }

type branch struct {
	key   string
	value any // *tree, []any, string, json.Number, bool or nil
}

// plant decodes a text. Depth is that of arrays and objects inside each other.
func plant(raw []byte) (value any, depth int, err error) {
	if !json.Valid(raw) {
		return nil, 0, &rewrite.SyntaxError{}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return grow(d)
}

func grow(d *json.Decoder) (any, int, error) {
	token, err := d.Token()
	if err != nil {
		return nil, 0, err
	}
	deepest := 0
	next := func() (any, error) {
		v, depth, err := grow(d)
		deepest = max(deepest, depth)
		return v, err
	}
	switch token {
	case json.Delim('{'):
		t := new(tree)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, 0, err
			}
			v, err := next()
			if err != nil {
				return nil, 0, err
			}
			t.members = append(t.members, branch{key.(string), v})
		}
		_, err = d.Token()
		return t, deepest + 1, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := next()
			if err != nil {
				return nil, 0, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, deepest + 1, err
	}
	return token, 0, nil
}

// text writes a tree.
func text(v any) []byte {
	var b bytes.Buffer
	switch v := v.(type) {
	case *tree:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(text(m.key))
			b.WriteByte(':')
			b.Write(text(m.value))
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(text(e))
		}
		b.WriteByte(']')
	default:
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v)
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}

// value is a tree as JavaScript reads it: of two members the last one.
func value(v any) any {
	switch v := v.(type) {
	case *tree:
		m := map[string]any{}
		for _, b := range v.members {
			m[b.key] = value(b.value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = value(v[i])
		}
		return list
	}
	return v
}

// get is the last member of that exact name.
func get(v any, path ...string) (any, bool) {
	for _, name := range path {
		t, ok := v.(*tree)
		if !ok {
			return nil, false
		}
		i := t.last(name)
		if i < 0 {
			return nil, false
		}
		v = t.members[i].value
	}
	return v, true
}

func getText(v any, path ...string) string {
	at, _ := get(v, path...)
	s, _ := at.(string)
	return s
}

func (t *tree) last(name string) int {
	for i := len(t.members) - 1; i >= 0; i-- {
		if t.members[i].key == name {
			return i
		}
	}
	return -1
}

func (t *tree) set(name string, v any) {
	if i := t.last(name); i >= 0 {
		t.members[i].value = v
		return
	}
	t.members = append(t.members, branch{name, v})
}

// each calls f for the values of all members that some reader takes for that name.
func each(v any, name string, f func(any)) {
	if t, ok := v.(*tree); ok {
		for _, m := range t.members {
			if strings.EqualFold(m.key, name) {
				f(m.value)
			}
		}
	}
}

// only leaves, of the members that some reader takes for one of the names, the
// last one of that exact name. It reports whether there were any.
func only(v any, names ...string) bool {
	t, ok := v.(*tree)
	if !ok {
		return false
	}
	var any bool
	for _, name := range names {
		last := t.last(name)
		kept := t.members[:0:0]
		for i, m := range t.members {
			like := strings.EqualFold(m.key, name)
			any = any || like
			if !like || i == last {
				kept = append(kept, m)
			}
		}
		t.members = kept
	}
	return any
}

// A reference is a session as the reference sees it.
type reference struct {
	policy *policy.Policy
	rules  rewrite.Rules
	open   [2]map[string]*refCall // by direction and canonical id
	token  string                 // a state that we sealed
	sealed State
	asks   *refSeal // the state that the message has to be sealed with
}

type refCall struct {
	id     any
	method string
	modern bool
	schema []byte // of a question; nil if it is none
	url    bool
}

// A refSeal is what a result's new requestState must hold.
type refSeal struct {
	serverState any
	sent        bool // there is a serverState
	forms       int
}

// sealedMark stands for a requestState that we sealed.
const sealedMark = "(sealed)"

// A refOutcome is what becomes of a message: a tree each way, nil for nothing.
type refOutcome struct{ forward, reply any }

func refError(id any, code string) *tree {
	return &tree{[]branch{{"jsonrpc", "2.0"}, {"id", id}, {"error", &tree{[]branch{{"code", json.Number(code)}}}}}}
}

// A refMessage is a message and what is known of it.
type refMessage struct {
	*reference
	to     Direction
	top    *tree
	kind   rewrite.Kind
	id     any
	method string // as in message.method
	own    string // its own method
	call   *refCall
	out    *refOutcome
}

func (m *refMessage) refuse(code string)       { m.out = &refOutcome{reply: refError(m.id, code)} }
func (m *refMessage) replaceError(code string) { m.out = &refOutcome{forward: refError(m.id, code)} }

// kindOf reads the envelope of a message. KindInvalid is none.
func kindOf(top *tree) rewrite.Kind {
	if v, _ := get(top, "jsonrpc"); v != "2.0" {
		return rewrite.KindInvalid
	}
	id, _ := get(top, "id")
	switch id.(type) {
	case nil, string, json.Number:
	default:
		return rewrite.KindInvalid
	}
	method, hasMethod := get(top, "method")
	result, hasResult := get(top, "result")
	fault, hasError := get(top, "error")
	if hasResult && hasError {
		switch {
		case fault == nil:
			hasError = false
		case result == nil, !hasMethod:
			hasResult = false
		}
	}
	if hasMethod {
		_, isText := method.(string)
		switch {
		case !isText || hasResult || hasError:
			return rewrite.KindInvalid
		case id == nil:
			return rewrite.KindNotification
		}
		return rewrite.KindRequest
	}
	switch {
	case hasError && !hasResult:
		return rewrite.KindError
	case hasResult && !hasError && id != nil:
		return rewrite.KindResult
	}
	return rewrite.KindInvalid
}

// handle says what becomes of a message. It reports false if it is none.
func (r *reference) handle(to Direction, v any) (refOutcome, bool) {
	switch v := v.(type) {
	case *tree:
		m := r.message(to, v)
		if m == nil {
			return refOutcome{}, false
		}
		return m.handle(), true
	case []any:
		return r.batch(to, v)
	}
	return refOutcome{}, false
}

func (r *reference) message(to Direction, top *tree) *refMessage {
	m := &refMessage{reference: r, to: to, top: top, kind: kindOf(top)}
	if m.kind == rewrite.KindInvalid {
		return nil
	}
	only(top, "jsonrpc", "id", "method", "params", "result", "error")
	if result, _ := get(top, "result"); m.kind == rewrite.KindError && result != nil {
		top.members = slices.DeleteFunc(top.members, func(b branch) bool { return b.key == "result" })
	}
	m.id, _ = get(top, "id")
	m.own = getText(top, "method")
	m.method = m.own
	return m
}

func (r *reference) batch(to Direction, list []any) (refOutcome, bool) {
	var messages []*refMessage
	for _, e := range list {
		top, _ := e.(*tree)
		if top == nil {
			return refOutcome{}, false
		}
		m := r.message(to, top)
		if m == nil {
			return refOutcome{}, false
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return refOutcome{reply: refError(nil, "-32600")}, to == ToServer
	}
	whole := true
	forward := make([]any, len(list))
	outs := make([]refOutcome, len(list))
	for i, m := range messages {
		outs[i] = m.handle()
		forward[i] = outs[i].forward
		whole = whole && outs[i].forward != nil && outs[i].reply == nil
	}
	if whole {
		return refOutcome{forward: forward}, true
	}
	var on, back []any
	for i, m := range messages {
		switch {
		case outs[i].reply != nil:
			back = append(back, outs[i].reply)
		case m.kind == rewrite.KindRequest:
			back = append(back, refError(m.id, "-32600"))
		case m.kind == rewrite.KindResult || m.kind == rewrite.KindError:
			on = append(on, refError(m.id, "-32600"))
		}
	}
	var out refOutcome
	if on != nil {
		out.forward = on
	}
	if back != nil {
		out.reply = back
	}
	return out, true
}

func (m *refMessage) handle() refOutcome {
	m.find()
	if m.to == ToServer {
		m.answer()
		m.responses()
	} else {
		m.question()
		m.inputRequests()
		m.urlError()
		m.icons()
	}
	if m.out != nil {
		return *m.out
	}
	return refOutcome{forward: m.top}
}

// find finds the request that a response answers.
func (m *refMessage) find() {
	if m.kind != rewrite.KindResult && m.kind != rewrite.KindError || m.id == nil {
		return
	}
	open := m.open[m.to.back()]
	key := canonicalID(text(m.id))
	m.call = open[key]
	if m.call == nil && m.to == ToServer {
		if n, ok := looseID(key); ok {
			for k, one := range open {
				if l, ok := looseID(k); ok && l == n {
					m.call, key = one, k
				}
			}
		}
	}
	if m.call == nil {
		return
	}
	delete(open, key)
	m.id, m.method = m.call.id, m.call.method
	if m.to == ToServer {
		m.top.set("id", m.id)
	}
}

// answer checks an answer to a question of the server's.
func (m *refMessage) answer() {
	if m.kind != rewrite.KindResult || m.call == nil || m.call.method != "elicitation/create" {
		return
	}
	result, _ := get(m.top, "result")
	was := text(result)
	d, back := m.check(m.call.schema, m.call.url, m.rules, was)
	if d.Outcome != policy.Pass {
		m.replaceError("-32602")
		return
	}
	m.top.set("result", back)
}

// check is what policy.Answers says of an answer, turned back to the server's types.
func (r *reference) check(schema []byte, url bool, rules rewrite.Rules, was []byte) (policy.AnswerDecision, any) {
	if url {
		d := r.policy.Answers.DecideURL(was)
		v, _, _ := plant(d.Apply(was))
		return d, v
	}
	v, _, _ := plant(was)
	if content, ok := get(v, "content"); ok {
		back, _, _ := plant(rewrite.RefitForm(schema, rewrite.Titled, rules).Restore(text(content)))
		v.(*tree).set("content", back)
	}
	d := r.policy.Answers.Decide(schema, text(v))
	v, _, _ = plant(d.Apply(text(v)))
	return d, v
}

// refAccepts reports whether some reader takes it for an accept with content.
func refAccepts(v any) bool {
	var action, content bool
	each(v, "action", func(v any) {
		s, _ := v.(string)
		action = action || strings.EqualFold(strings.TrimSpace(s), "accept")
	})
	each(v, "content", func(any) { content = true })
	return action && content
}

// responses checks the answers that a modern request brings.
func (m *refMessage) responses() {
	params, _ := get(m.top, "params")
	if m.kind != rewrite.KindRequest && m.kind != rewrite.KindNotification || !only(params, "inputResponses", "requestState") {
		return
	}
	only(params, "name", "uri", "arguments", "taskId")
	answers, given := get(params, "inputResponses")
	state, stateful := get(params, "requestState")
	list, _ := answers.(*tree)
	if m.kind == rewrite.KindNotification {
		if list != nil {
			kept := new(tree)
			for i, a := range list.members {
				if list.last(a.key) == i {
					kept.members = append(kept.members, a)
				}
				if list.last(a.key) == i && refAccepts(a.value) {
					m.out = &refOutcome{}
				}
			}
			list.members = kept.members
		}
		return
	}
	if !given && !stateful {
		return
	}
	if given && list == nil && answers != nil {
		m.refuse("-32602")
		return
	}
	token, _ := state.(string)
	var sealed *State
	if strings.HasPrefix(token, sealPrefix) {
		if token != m.token || m.digest(params) != m.sealed.Call {
			m.refuse("-32602")
			return
		}
		sealed = &m.sealed
		server, _, _ := plant(sealed.ServerState)
		params.(*tree).set("requestState", server)
	}
	if list != nil {
		m.judgeAll(list, sealed)
	}
}

func (m *refMessage) judgeAll(list *tree, sealed *State) {
	var kept []branch
	bad := false
	for i, a := range list.members {
		if list.last(a.key) != i {
			continue
		}
		if _, isObject := a.value.(*tree); !isObject {
			m.refuse("-32602")
			return
		}
		f := formOf(sealed, a.key)
		switch {
		case f != nil:
			request, _, _ := plant(f.Request)
			schema, _ := get(request, "params", "requestedSchema")
			d, back := m.check(text(schema), f.URL, rewrite.Rules(f.Rules), text(a.value))
			bad = bad || d.Outcome != policy.Pass
			kept = append(kept, branch{a.key, back})
		case !refAccepts(a.value):
			kept = append(kept, a)
		case sealed == nil:
			m.refuse("-32602")
			return
		}
	}
	if bad {
		m.refuse("-32602")
	}
	list.members = kept
}

func formOf(s *State, key string) *SealedForm {
	if s != nil {
		for i := range s.Forms {
			if s.Forms[i].Key == key {
				return &s.Forms[i]
			}
		}
	}
	return nil
}

// digest is that of the call that a request makes.
func (m *refMessage) digest(params any) [32]byte {
	target := ""
	switch m.own {
	case "tools/call", "prompts/get":
		target = getText(params, "name")
	case "resources/read":
		target = getText(params, "uri")
	default:
		return [32]byte{}
	}
	if getText(params, "_meta", metaProtocolVersion) == "" {
		return [32]byte{}
	}
	var arguments []byte
	if v, ok := get(params, "arguments"); ok {
		arguments = text(v)
	}
	return CallDigest(m.own, target, arguments)
}
