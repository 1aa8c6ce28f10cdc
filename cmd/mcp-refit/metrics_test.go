package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/proxy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// get asks a handler for a path.
func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// used are metrics of each kind with a value.
func used() *metrics {
	m := newMetrics()
	m.message(proxy.Message{To: proxy.ToServer, Kind: rewrite.KindRequest, Method: "tools/call", Size: 10})
	m.message(proxy.Message{To: proxy.ToClient, Kind: rewrite.KindResult, Method: "tools/list", Size: 100, Edited: true})
	m.message(proxy.Message{To: proxy.ToServer, Kind: rewrite.KindRequest, Method: "x/its-own-42", Size: 1, Refused: true})
	m.decision(proxy.Decision{Rule: "icon", Verdict: proxy.VerdictStripped})
	m.decision(proxy.Decision{Rule: "enum-names", Verdict: proxy.VerdictRewritten, Observed: true})
	m.answer(proxy.VerdictAsked)
	for _, outcome := range []string{proxy.CallAsked, proxy.CallAsked, proxy.CallAnswered} {
		m.call(proxy.Call{To: proxy.ToServer, Method: "tools/call", Outcome: outcome, Duration: 30 * time.Millisecond})
	}
	m.call(proxy.Call{To: proxy.ToClient, Method: "elicitation/create", Outcome: proxy.CallAnswered, Duration: time.Hour})
	m.session("", true)
	m.fetch(icon.FetchInfo{Host: "cdn.example.com", Duration: time.Millisecond})
	m.decode(icon.DecodeInfo{Format: "png", Duration: time.Millisecond, Reason: icon.ReasonTooLarge})
	m.reloaded(errors.New("a fault"))
	m.children.Inc()
	return m
}

func TestMetrics(t *testing.T) {
	_, text := get(t, used().handler(), "/metrics")
	for _, want := range []string{
		`mcp_refit_messages_total{direction="to_server",kind="request",method="tools/call",result="passed"} 1`,
		`mcp_refit_messages_total{direction="to_client",kind="result",method="tools/list",result="edited"} 1`,
		`mcp_refit_messages_total{direction="to_server",kind="request",method="other",result="refused"} 1`,
		`mcp_refit_message_bytes_total{direction="to_server"} 11`,
		`mcp_refit_decisions_total{observed="false",rule="icon",verdict="stripped"} 1`,
		`mcp_refit_decisions_total{observed="true",rule="enum-names",verdict="rewritten"} 1`,
		`mcp_refit_icons_total{verdict="stripped"} 1`,
		`mcp_refit_answers_total{outcome="asked_again"} 1`,
		`mcp_refit_operations_total{method="tools/call",outcome="answered"} 1`, // and two rounds before it
		`mcp_refit_input_rounds_total{method="tools/call"} 2`,
		`mcp_refit_operation_duration_seconds_bucket{method="tools/call",le="0.05"} 3`,
		`mcp_refit_icon_fetch_duration_seconds_count{result="ok"} 1`,
		`mcp_refit_icon_decode_duration_seconds_count{format="png",result="too_large"} 1`,
		`mcp_refit_sessions 1`,
		`mcp_refit_children 1`,
		`mcp_refit_policy_reloads_total{result="error"} 1`,
		`mcp_refit_policy_reloads_total{result="ok"} 0`,
		`mcp_refit_policy_last_reload_successful 0`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no line %s", want)
		}
	}
	if regexp.MustCompile(`its-own|cdn\.example|method="elicitation`).MatchString(text) {
		t.Errorf("a label is not bounded:\n%s", text)
	}
}

func TestAdmin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policyText("strip"))
	l := liveFrom(t, file)
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse("http://" + upstream.Addr().String() + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &admin{live: l, metrics: newMetrics(), reach: newHealth(ctx, &target{url: u}, true, nil).reachable, ending: ctx}
	h := a.handler()
	ask := func(path string) (int, readiness) {
		t.Helper()
		code, text := get(t, h, path)
		var r readiness
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return code, r
	}
	if code, text := get(t, h, "/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if code, text := get(t, h, "/version"); code != 200 || !strings.Contains(text, `"version":`) {
		t.Errorf("/version: %d %s", code, text)
	}
	if code, _ := get(t, h, "/debug/pprof/"); code != 404 {
		t.Errorf("/debug/pprof/ without pprof: %d", code)
	}
	if code, r := ask("/readyz"); code != 200 || !r.Ready || r.Server != "ok" || r.Policy != "ok" || r.Loaded.IsZero() || r.Waiting != nil {
		t.Errorf("ready: %d %+v", code, r)
	}
	if err := os.WriteFile(file, []byte("version: 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.reload()
	if code, r := ask("/readyz"); code != 200 || !r.Ready || !strings.Contains(r.Policy, "policy.yaml:1:10: version: 2 is more than 1") {
		t.Errorf("with a bad file: %d %+v", code, r)
	}
	upstream.Close()
	if code, r := ask("/readyz"); code != 503 || r.Ready || !strings.Contains(r.Server, "refused") {
		t.Errorf("without a server: %d %+v", code, r)
	}
	cancel()
	if code, r := ask("/readyz"); code != 503 || !r.Ending {
		t.Errorf("at the end: %d %+v", code, r)
	}
	a.pprof = true
	if code, _ := get(t, a.handler(), "/debug/pprof/"); code != 200 {
		t.Errorf("/debug/pprof/: %d", code)
	}
}
