package rewrite

// A Question is one elicitation in a message: the params of a request
// elicitation/create, or of one that a modern result carries in inputRequests.
type Question struct {
	Key    string // its key in inputRequests; empty for a request of its own
	Path   string // of the params, such as result.inputRequests.pick.params
	Params Span

	// The values of the params' members, each empty if there is none. Of
	// duplicates it is the last.
	Mode, Message, Schema, URL, Task Span

	Entry   Span // the member of inputRequests; empty for a request of its own
	Request Span // that member's value, {"method": …, "params": …}
}

// Modes of an elicitation. One that is absent means form.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// ModeOf returns the question's mode: form where it is absent or null, and
// otherwise what it says, or "?" if that is not a string.
func (q Question) ModeOf(raw []byte) string {
	if q.Mode.Empty() || raw[q.Mode.Start] == 'n' {
		return ModeForm
	}
	if m, ok := String(raw, q.Mode); ok {
		return m
	}
	return "?"
}

// Questions are the elicitations of one message.
type Questions struct {
	List  []Question
	State Member // requestState, beside inputRequests
	In    Span   // the object that carries inputRequests; empty for a request

	// Surplus lists the members that another reader could take for those
	// above: duplicates and names in another case. A message that has any is
	// to be passed on without them, and one that has more than [MaxSurplus] not
	// at all.
	Surplus []Span
}

// MaxQuestions bounds how many questions, or answers, of one message are
// listed; one more says that there are more. Each costs us some 300 bytes, and
// as little as six bytes of the message.
const MaxQuestions = 4096

// Without returns the text at s, without the members of Surplus that stand in it.
func (q *Questions) Without(raw []byte, s Span) []byte {
	var e Edits
	for _, at := range q.Surplus {
		if at.Start > s.Start && at.End < s.End {
			e.Remove(Span{at.Start - s.Start, at.End - s.Start})
		}
	}
	return e.Apply(s.Of(raw))
}

// FindQuestions finds the elicitations that a message to the client asks.
func FindQuestions(raw []byte, env Envelope) Questions {
	var q Questions
	switch {
	case env.Kind == KindRequest && env.Method == "elicitation/create":
		one := Question{Path: "params", Params: env.Params}
		q.params(raw, &one)
		q.List = append(q.List, one)
	case env.Kind == KindResult:
		q.inputRequests(raw, env.Result, "result")
	case env.Kind == KindNotification && env.Method == "notifications/tasks":
		q.inputRequests(raw, env.Params, "params")
	}
	return q
}

func (q *Questions) inputRequests(raw []byte, in Span, path string) {
	requests := unique(raw, in, &q.Surplus, "inputRequests")[0]
	if requests.At.Empty() && len(q.Surplus) == 0 {
		return // then its requestState is none of ours
	}
	state := unique(raw, in, &q.Surplus, "requestState")[0]
	if requests.Value.Empty() || raw[requests.Value.Start] != '{' {
		return
	}
	q.In, q.State = in, state
	last := map[string]int{}
	for e := range Members(raw, requests.Value) {
		one := q.entry(raw, e, path+".inputRequests."+e.Key)
		if i, twice := last[e.Key]; twice {
			q.List[i], q.Surplus = one, more(q.Surplus, q.List[i].Entry)
			if len(q.Surplus) > MaxSurplus {
				return
			}
			continue
		}
		last[e.Key] = len(q.List)
		if q.List = append(q.List, one); len(q.List) > MaxQuestions {
			return
		}
	}
	elicitations := q.List[:0]
	for _, one := range q.List {
		if !one.Params.Empty() {
			elicitations = append(elicitations, one)
		}
	}
	q.List = elicitations
}

// entry reads one member of inputRequests. Its Params are empty if it is no elicitation.
func (q *Questions) entry(raw []byte, e Member, path string) Question {
	one := Question{Key: e.Key, Entry: e.At, Request: e.Value, Path: path + ".params"}
	m := unique(raw, e.Value, &q.Surplus, "method", "params")
	method, _ := String(raw, m[0].Value)
	if method != "elicitation/create" || m[1].Value.Empty() || raw[m[1].Value.Start] != '{' {
		return one
	}
	one.Params = m[1].Value
	q.params(raw, &one)
	return one
}

func (q *Questions) params(raw []byte, one *Question) {
	m := unique(raw, one.Params, &q.Surplus, "mode", "message", "requestedSchema", "url", "task")
	one.Mode, one.Message, one.Schema, one.URL, one.Task = m[0].Value, m[1].Value, m[2].Value, m[3].Value, m[4].Value
}

// unique finds the members of those names in an object, the last of each, and
// adds to surplus the others of the same fold.
func unique(raw []byte, obj Span, surplus *[]Span, names ...string) []Member {
	found := make([]Member, len(names))
	for m := range Members(raw, obj) {
		for i, n := range names {
			if len(m.Key) < len(n) || Fold(m.Key) != Fold(n) {
				continue
			}
			if m.Key != n {
				*surplus = more(*surplus, m.At)
				continue
			}
			if !found[i].At.Empty() {
				*surplus = more(*surplus, found[i].At)
			}
			found[i] = m
		}
	}
	return found
}

// Answers are the input responses of one modern request to the server.
type Answers struct {
	Responses Member   // inputResponses of params
	State     Member   // requestState of params
	List      []Member // one a key, the last of each

	// Surplus is as in Questions. Members that say what the request is for
	// count, too: two readers must not see two calls.
	Surplus []Span
}

// FindAnswers finds the input responses and the state in a request's params.
func FindAnswers(raw []byte, env Envelope) Answers {
	var a Answers
	m := unique(raw, env.Params, &a.Surplus, "inputResponses", "requestState")
	a.Responses, a.State = m[0], m[1]
	if a.Responses.At.Empty() && a.State.At.Empty() && len(a.Surplus) == 0 {
		return a
	}
	unique(raw, env.Params, &a.Surplus, "name", "uri", "arguments", "taskId")
	last := map[string]int{}
	for e := range Members(raw, a.Responses.Value) {
		if i, twice := last[e.Key]; twice {
			a.List[i], a.Surplus = e, more(a.Surplus, a.List[i].At)
			if len(a.Surplus) > MaxSurplus {
				break
			}
			continue
		}
		last[e.Key] = len(a.List)
		if a.List = append(a.List, e); len(a.List) > MaxQuestions {
			break
		}
	}
	return a
}

// QuestionAt reads the params of one elicitation that stands by itself.
func QuestionAt(raw []byte, params Span) Question {
	var all Questions
	one := Question{Path: "params", Params: params}
	all.params(raw, &one)
	return one
}
