package proxy

import (
	"context"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

const hasIcons = rewrite.KeyIcons | rewrite.KeyWebsiteURL | rewrite.KeyOdd

// An iconJob is the icons of one message on their way through the policy.
type iconJob struct {
	m     *message
	sets  []rewrite.IconSet
	place [][]rewrite.Placement // one an icon, as in sets
	wait  []wanted
	late  []*icon.Pending

	tallies []tally
}

// A wanted icon is one that the policy inlines.
type wanted struct {
	set, icon int
	pending   *icon.Pending
	image     icon.Image
	host      string
	rule      string
}

// judgeIcons decides what becomes of each icon and website that the server sends.
func (m *message) judgeIcons() {
	if m.env.Seen&hasIcons == 0 {
		return
	}
	m.icons(rewrite.Place{ToClient: true, Method: m.method()}, m.oldClient())
}

// clientIcons does the same for what the client sends, where the policy asks for it.
func (m *message) clientIcons() {
	if m.env.Seen&hasIcons == 0 || !m.policy.Config.Icons.Client {
		return
	}
	m.icons(rewrite.Place{Method: m.method()}, false)
}

// icons decides on the icons of a message at that place. A client of a
// revision that has no icons gets none.
func (m *message) icons(at rewrite.Place, leaveOut bool) {
	j := iconJob{m: m, sets: rewrite.Icons(m.raw, m.env, at)}
	if len(j.sets) == 0 {
		return
	}
	j.place = make([][]rewrite.Placement, len(j.sets))
	for i := range j.sets {
		j.place[i] = make([]rewrite.Placement, len(j.sets[i].Icons))
		for k := range j.sets[i].Icons {
			j.judge(i, k, leaveOut)
		}
	}
	j.collect()
	j.budget()
	for i := range j.sets {
		s := &j.sets[i]
		s.Edit(m.raw, &m.edits, j.place[i], j.keepWebsite(s))
	}
	j.log()
	if len(j.late) > 0 {
		m.incomplete = true
		m.announce(j.late)
	}
}

// judge decides on one icon. What is to be inlined is begun at once, so that
// all icons of a message are on their way together.
func (j *iconJob) judge(set, n int, leaveOut bool) {
	s, p := &j.sets[set], j.m.policy
	ic := &s.Icons[n]
	switch {
	case ic.Bad != "":
		j.tell(set, n, policy.IconDecision{Reason: ic.Bad}, VerdictStripped)
		return
	case leaveOut:
		j.tell(set, n, policy.IconDecision{Reason: "the client's revision has no icons"}, VerdictStripped)
		return
	}
	d := p.Icons.Decide(policy.IconArgs{URL: ic.Src, Origin: j.m.session.origin})
	switch {
	case d.Verdict == policy.Keep:
		j.place[set][n].Keep = true
		j.tell(set, n, d, VerdictKept)
	case d.Verdict == policy.Inline && j.m.session.proxy.Icons == nil:
		d.Reason = "nothing here can fetch or decode it"
		j.tell(set, n, d, VerdictStripped)
	case d.Verdict == policy.Inline && p.Config.Observe:
		j.tell(set, n, d, VerdictInlined)
	case d.Verdict == policy.Inline:
		url := d.URL
		if d.Data {
			url = ic.Src
		}
		j.wait = append(j.wait, wanted{
			set: set, icon: n, host: d.Host, rule: d.Rule,
			pending: j.m.session.proxy.Icons.Begin(url, ic.MimeType),
		})
	default:
		j.tell(set, n, d, VerdictStripped)
	}
}

// collect waits for the icons that are on their way, all together for at most
// the policy's deadline. Those that come later are stripped this time.
func (j *iconJob) collect() {
	ready := func(w wanted) bool {
		select {
		case <-w.pending.Done():
			return true
		default:
			return false
		}
	}
	ctx := context.Background()
	if !allOf(j.wait, ready) {
		if flush := j.m.session.waiting; flush != nil {
			flush(j.m.to)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.m.policy.Config.Icons.Deadline.Std())
		defer cancel()
	}
	for i := range j.wait {
		w := &j.wait[i]
		image, err := w.pending.Wait(ctx)
		if err == nil {
			w.image = image
			continue
		}
		reason := "it has not arrived in time, and may be there the next time"
		if !ready(*w) {
			j.late = append(j.late, w.pending)
		} else {
			reason = "it was fetched or decoded in vain: " + string(icon.ReasonOf(err))
		}
		j.tell(w.set, w.icon, policy.IconDecision{Reason: reason, Rule: w.rule, Host: w.host}, VerdictStripped)
	}
	j.wait = slices.DeleteFunc(j.wait, func(w wanted) bool { return w.image.URI == "" })
}

func allOf[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !ok(v) })
}

// budget places the pictures that have arrived, within the policy's budget for
// a message: the largest are scaled down first, and then stripped.
func (j *iconJob) budget() {
	limit := int(j.m.policy.Config.Icons.Budget.PerMessage)
	total := 0
	for _, w := range j.wait {
		total += len(w.image.URI)
	}
	if limit > 0 && total > limit {
		total = j.shrink(total, limit)
	}
	if limit > 0 && total > limit {
		slices.SortStableFunc(j.wait, func(a, b wanted) int { return len(b.image.URI) - len(a.image.URI) })
		for len(j.wait) > 0 && total > limit {
			w := j.wait[0]
			total -= len(w.image.URI)
			j.tell(w.set, w.icon, policy.IconDecision{Reason: "the message's budget for icons is used up", Rule: w.rule, Host: w.host}, VerdictStripped)
			j.wait = j.wait[1:]
		}
	}
	for _, w := range j.wait {
		j.place[w.set][w.icon] = rewrite.Placement{
			URI: w.image.URI, Size: strconv.Itoa(w.image.Width) + "x" + strconv.Itoa(w.image.Height),
		}
		j.tell(w.set, w.icon, policy.IconDecision{Reason: "inlined as " + strconv.Itoa(w.image.Width) + "x" + strconv.Itoa(w.image.Height), Rule: w.rule, Host: w.host}, VerdictInlined)
	}
}

// shrink scales down those that are above a fair share of the budget, and
// returns the total size after that.
func (j *iconJob) shrink(total, limit int) int {
	share := limit / len(j.wait)
	ctx, cancel := context.WithTimeout(context.Background(), j.m.policy.Config.Icons.Deadline.Std())
	defer cancel()
	smaller := map[string]icon.Image{} // equal icons are scaled once
	for i := range j.wait {
		w := &j.wait[i]
		if len(w.image.URI) <= share {
			continue
		}
		was := w.image.URI
		s, done := smaller[was]
		if !done {
			var err error
			if s, err = j.m.session.proxy.Icons.Shrink(ctx, w.image, share); err != nil {
				s = w.image
			}
			smaller[was] = s
		}
		total += len(s.URI) - len(was)
		w.image = s
	}
	return total
}

// keepWebsite decides on the websiteUrl of an Implementation. It is never fetched.
func (j *iconJob) keepWebsite(s *rewrite.IconSet) bool {
	if !s.Website.There() {
		return true
	}
	d := policy.IconDecision{Reason: s.Website.Bad}
	if s.Website.Bad == "" {
		d = j.m.policy.Icons.DecideWebsite(policy.IconArgs{URL: s.Website.URL, Origin: j.m.session.origin})
	}
	verdict := VerdictStripped
	if d.Verdict != policy.Strip {
		verdict = VerdictKept
	}
	j.m.decide(Decision{Path: s.Path + ".websiteUrl", Rule: "website", Verdict: verdict, Reason: reasonText(d)})
	return d.Verdict != policy.Strip
}

// tell counts the verdict on one icon for the log, and audits it.
func (j *iconJob) tell(set, n int, d policy.IconDecision, verdict string) {
	text := reasonText(d)
	j.count(verdict, text)
	if !j.m.audited() {
		return
	}
	s := &j.sets[set]
	j.m.audit(Decision{
		Path: s.Path + ".icons[" + strconv.Itoa(n) + "]", Rule: "icon", Verdict: verdict, Reason: text,
		Before: []byte(s.Icons[n].Src), After: []byte(j.place[set][n].URI),
	})
}

// A tally says how many icons of a message met the same end. A list of
// thousands of tools makes a few lines in the log.
type tally struct {
	verdict, reason string
	icons           int
}

func (j *iconJob) count(verdict, reason string) {
	for i := range j.tallies {
		if t := &j.tallies[i]; t.verdict == verdict && t.reason == reason {
			t.icons++
			return
		}
	}
	if len(j.tallies) < maxTallies {
		j.tallies = append(j.tallies, tally{verdict, reason, 1})
	}
}

// maxTallies is how many lines the icons of one message may make in the log.
const maxTallies = 16

func (j *iconJob) log() {
	for _, t := range j.tallies {
		log := j.m.session.log().Info
		if t.verdict == VerdictKept {
			log = j.m.session.log().Debug
		}
		log(j.m.verb(t.verdict), zap.String("rule", "icon"), zap.Int("icons", t.icons), zap.String("path", j.sets[0].Path),
			zap.String("why", t.reason), zap.String("method", j.m.method()), zap.Stringer("direction", j.m.to))
	}
}

// reasonText says why, and for which host; never the whole URL, which may
// carry a token.
func reasonText(d policy.IconDecision) string {
	text := d.Reason
	if d.Host != "" {
		text += " (" + d.Host + ")"
	}
	return text
}
