package proxy

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

const hasIcons = rewrite.KeyIcons | rewrite.KeyWebsiteURL | rewrite.KeyOdd

// An iconJob is the icons of one message on their way through the policy.
type iconJob struct {
	m     *message
	fetch *icon.Fetcher // nil: nothing fetches
	sets  []rewrite.IconSet
	place [][]rewrite.Placement // one an icon, as in sets
	wait  []wanted
	late  []*icon.Pending

	tallies []tally
	others  int // icons that none of them counts

	finder rewrite.IconFinder  // has the memory of sets
	places []rewrite.Placement // and this that of place
}

// iconJobs are those that are done with, for the next.
var iconJobs = sync.Pool{New: func() any { return new(iconJob) }}

// maxPlacesKept bounds what a job that is done with keeps of each kind.
const maxPlacesKept = 2048

// done lets go of the message, and leaves the memory to the next.
func (j *iconJob) done() {
	j.finder.Reset()
	clear(j.place)
	clear(j.wait)
	clear(j.tallies)
	clear(j.places)
	*j = iconJob{
		place: j.place[:0], wait: j.wait[:0], places: j.places[:0], tallies: j.tallies[:0], finder: j.finder,
	}
	if cap(j.places) > maxPlacesKept || cap(j.place) > maxPlacesKept || cap(j.wait) > maxPlacesKept {
		j.place, j.wait, j.places = nil, nil, nil
	}
	iconJobs.Put(j)
}

// A wanted icon is one that the policy inlines.
type wanted struct {
	set, icon int
	pending   *icon.Pending
	image     icon.Image
	host      string
	rule      string
}

func (w *wanted) arrived() bool {
	select {
	case <-w.pending.Done():
		return true
	default:
		return false
	}
}

// because is a decision on the icon that is made after the policy's own.
func (w *wanted) because(reason string) policy.IconDecision {
	return policy.IconDecision{Reason: reason, Rule: w.rule, Host: w.host}
}

// An iconShare is what all messages of a batch have together, as one message
// by itself has it alone: the time to wait for icons and the room for them.
type iconShare struct {
	until time.Time // no wait is longer; zero: none has begun
	bytes int       // of the data: URIs placed so far
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
	j := iconJobs.Get().(*iconJob)
	defer j.done()
	sets, err := j.finder.Icons(m.raw, m.env, at)
	if err != nil {
		m.tooMany("icons", "icon", err.Error())
		return
	}
	if len(sets) == 0 {
		return
	}
	j.m, j.fetch, j.sets = m, m.session.proxy.fetcher(m.policy), sets
	j.placements()
	for i := range sets {
		for k := range sets[i].Icons {
			j.judge(i, k, leaveOut)
		}
	}
	j.collect()
	j.budget()
	for i := range sets {
		s := &sets[i]
		if keep := j.keepWebsite(s); !m.policy.Config.Observe {
			s.Edit(m.raw, &m.edits, j.place[i], keep)
		}
	}
	j.log()
	if len(j.late) > 0 && !m.policy.Config.Observe {
		m.incomplete = true
		m.announce(j.late)
	}
}

// placements makes those of all icons, which begin as stripped.
func (j *iconJob) placements() {
	n := 0
	for i := range j.sets {
		n += len(j.sets[i].Icons)
	}
	j.places = append(j.places, make([]rewrite.Placement, n)...)
	all := j.places
	for i := range j.sets {
		n = len(j.sets[i].Icons)
		j.place, all = append(j.place, all[:n:n]), all[n:]
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
	case d.Verdict == policy.Inline && j.fetch == nil:
		d.Reason = "nothing here can fetch or decode it"
		j.tell(set, n, d, VerdictStripped)
	case d.Verdict == policy.Inline && p.Config.Observe && !j.m.session.proxy.FetchObserved:
		j.tell(set, n, d, VerdictInlined)
	case d.Verdict == policy.Inline:
		url := d.URL
		if d.Data {
			url = ic.Src
		}
		j.wait = append(j.wait, wanted{
			set: set, icon: n, host: d.Host, rule: d.Rule,
			pending: j.fetch.Begin(url, ic.MimeType),
		})
	default:
		j.tell(set, n, d, VerdictStripped)
	}
}

// waiting is the context of a wait for icons. It ends when the policy's
// deadline is over, which begins with the first wait and is that of the whole
// message, or batch of messages.
func (j *iconJob) waiting() (context.Context, context.CancelFunc) {
	share := j.m.share
	if share.until.IsZero() {
		if flush := j.m.session.waiting; flush != nil {
			flush(j.m.to)
		}
		share.until = time.Now().Add(j.m.policy.Config.Icons.Deadline.Std())
	}
	return context.WithDeadline(context.Background(), share.until)
}

// collect waits for the icons that are on their way, all together for at most
// the policy's deadline. Those that come later are stripped this time.
func (j *iconJob) collect() {
	ctx := context.Background()
	if slices.ContainsFunc(j.wait, func(w wanted) bool { return !w.arrived() }) {
		var cancel context.CancelFunc
		ctx, cancel = j.waiting()
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
		switch why := icon.ReasonOf(err); {
		case !w.arrived():
			j.late = append(j.late, w.pending)
		case why == icon.ReasonBusy || why == icon.ReasonPurged || why == icon.ReasonClosed: // which speaks of the moment
			j.m.incomplete = true
			fallthrough
		default:
			reason = "it was fetched or decoded in vain: " + string(icon.ReasonOf(err))
		}
		j.tell(w.set, w.icon, w.because(reason), VerdictStripped)
	}
	j.wait = slices.DeleteFunc(j.wait, func(w wanted) bool { return w.image.URI == "" })
}

// budget places the pictures that have arrived, within the policy's budget for
// a message: the largest are scaled down first, and then stripped.
func (j *iconJob) budget() {
	total := 0
	for i := range j.wait {
		total += len(j.wait[i].image.URI)
	}
	if limit := int(j.m.policy.Config.Icons.Budget.PerMessage); limit > 0 {
		limit = max(0, limit-j.m.share.bytes)
		if total > limit {
			total = j.shrink(total, limit)
		}
		if total > limit {
			total = j.stripLargest(total, limit)
		}
	}
	j.m.share.bytes += total
	for i := range j.wait {
		w := &j.wait[i]
		j.place[w.set][w.icon] = rewrite.Placement{URI: w.image.URI, Width: w.image.Width, Height: w.image.Height}
		j.tell(w.set, w.icon, w.because(inlined), VerdictInlined)
	}
}

const inlined = "fetched or decoded, and encoded anew"

// stripLargest takes out pictures until the rest is within the limit, and
// returns how much that is.
func (j *iconJob) stripLargest(total, limit int) int {
	slices.SortStableFunc(j.wait, func(a, b wanted) int { return len(b.image.URI) - len(a.image.URI) })
	n := 0
	for ; n < len(j.wait) && total > limit; n++ {
		w := &j.wait[n]
		total -= len(w.image.URI)
		j.tell(w.set, w.icon, w.because("the message's budget for icons is used up"), VerdictStripped)
	}
	j.wait = slices.Delete(j.wait, 0, n)
	return total
}

// shrink scales down the largest, and returns the total size after that. Those
// that are not done by the deadline are late.
func (j *iconJob) shrink(total, limit int) int {
	most := fairShare(j.wait, limit)
	smaller := map[string]*icon.Pending{} // equal icons are scaled once
	for i := range j.wait {
		if uri := j.wait[i].image.URI; len(uri) > most && smaller[uri] == nil {
			smaller[uri] = j.fetch.BeginShrink(j.wait[i].image, most)
		}
	}
	ctx, cancel := j.waiting()
	defer cancel()
	for i := range j.wait {
		w := &j.wait[i]
		was := len(w.image.URI)
		p := smaller[w.image.URI]
		if p == nil {
			continue
		}
		image, err := p.Wait(ctx)
		if err == nil {
			w.image = image
			total += len(image.URI) - was
		} else if errors.Is(err, icon.ErrPending) {
			j.late = append(j.late, p)
		}
	}
	return total
}

// fairShare is the size to which the largest pictures are to be cut down, all
// to the same, for the total to be within the limit.
func fairShare(list []wanted, limit int) int {
	sizes := make([]int, len(list))
	for i := range list {
		sizes[i] = len(list[i].image.URI)
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if each := limit / (len(sizes) - i); size > each {
			return each
		}
		limit -= size
	}
	return limit
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
	j.m.decide(Decision{Path: s.Path() + ".websiteUrl", Rule: "website", Verdict: verdict, Reason: reasonText(d.Reason, d.Host)})
	return d.Verdict != policy.Strip
}

// tell counts the verdict on one icon for the log, and audits it.
func (j *iconJob) tell(set, n int, d policy.IconDecision, verdict string) {
	j.count(verdict, d.Reason, d.Host)
	if !j.m.audited() {
		return
	}
	s := &j.sets[set]
	j.m.audit(Decision{
		Path: s.Path() + ".icons[" + strconv.Itoa(n) + "]", Rule: "icon", Verdict: verdict, Reason: reasonText(d.Reason, d.Host),
		Before: []byte(s.Icons[n].Src), After: []byte(j.place[set][n].URI),
	})
}

// A tally says how many icons of a message met the same end. A list of
// thousands of tools makes a few lines in the log.
type tally struct {
	verdict, reason, host string
	icons                 int
}

func (j *iconJob) count(verdict, reason, host string) {
	for i := range j.tallies {
		if t := &j.tallies[i]; t.verdict == verdict && t.reason == reason && t.host == host {
			t.icons++
			return
		}
	}
	if len(j.tallies) < maxTallies {
		j.tallies = append(j.tallies, tally{verdict, reason, host, 1})
		return
	}
	j.others++
}

// maxTallies is how many lines the icons of one message may make in the log.
const maxTallies = 16

func (j *iconJob) log() {
	for _, t := range j.tallies {
		log := j.m.session.log().Info
		if t.verdict == VerdictKept {
			log = j.m.session.log().Debug
		}
		log(j.m.verb(t.verdict), zap.String("rule", "icon"), zap.Int("icons", t.icons), zap.String("path", j.sets[0].Path()),
			zap.String("why", reasonText(t.reason, t.host)), zap.String("method", j.m.method()), zap.Stringer("direction", j.m.to))
	}
	if j.others > 0 {
		j.m.session.log().Info("more icons were judged", zap.Int("icons", j.others), zap.String("method", j.m.method()))
	}
}

// reasonText says why, and for which host; never the whole URL, which may
// carry a token.
func reasonText(reason, host string) string {
	if host == "" {
		return reason
	}
	return reason + " (" + host + ")"
}
