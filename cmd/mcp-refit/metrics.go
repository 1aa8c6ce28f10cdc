package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/proxy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// metrics are what Prometheus scrapes. They are made only where there is an
// admin address. Every label has a bounded set of values: a method that the
// protocol doesn't know is "other", and there is none for servers and tools.
type metrics struct {
	registry *prometheus.Registry

	messages   *prometheus.CounterVec
	bytes      *prometheus.CounterVec
	decisions  *prometheus.CounterVec
	icons      *prometheus.CounterVec
	answers    *prometheus.CounterVec
	operations *prometheus.CounterVec
	rounds     *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	fetches    *prometheus.HistogramVec
	decodings  *prometheus.HistogramVec
	sessions   prometheus.Gauge
	children   prometheus.Gauge
	reloads    *prometheus.CounterVec
	reloadOK   prometheus.Gauge
	reloadTime prometheus.Gauge
}

// Buckets in seconds: of MCP operations those of OpenTelemetry's conventions,
// of what fetcher and worker do finer ones.
var (
	operationBuckets = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	iconBuckets      = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "mcp_refit", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "mcp_refit", Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "mcp_refit", Name: name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	m.messages = counter("messages_total", "Messages handled, by what became of them.", "direction", "kind", "method", "result")
	m.bytes = counter("message_bytes_total", "Bytes of the messages handled, as they came.", "direction")
	m.decisions = counter("decisions_total", "What was changed, refused or let through by which rule; observed is true where it only would have been.", "rule", "verdict", "observed")
	m.icons = counter("icons_total", "Icons judged, by what became of them.", "verdict")
	m.answers = counter("answers_total", "Answers to elicitations that were checked, by outcome.", "outcome")
	m.operations = counter("operations_total", "Requests of clients that are over; one that asks the client for input counts once, with its last round.", "method", "outcome")
	m.rounds = counter("input_rounds_total", "Results that asked the client for input, so that another round follows.", "method")
	m.duration = histogram("operation_duration_seconds", "Time from a client's request to its answer, a round each.", operationBuckets, "method")
	m.fetches = histogram("icon_fetch_duration_seconds", "Time to fetch an icon, by how it ended.", iconBuckets, "result")
	m.decodings = histogram("icon_decode_duration_seconds", "Time to decode an icon in a worker, the wait for one included, by how it ended.", iconBuckets, "format", "result")
	m.sessions = gauge("sessions", "Sessions that are open.")
	m.children = gauge("children", "Servers that run as children.")
	m.reloads = counter("policy_reloads_total", "Reloads of the policy file.", "result")
	m.reloadOK = gauge("policy_last_reload_successful", "Whether the policy in force is the one that the file holds: 1, or 0 if its last reload failed.")
	m.reloadTime = gauge("policy_last_reload_success_timestamp_seconds", "When the policy in force was loaded.")
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcp_refit", Name: "build_info", Help: "Always 1, with the version."}, []string{"version"})
	build.WithLabelValues(versionText()).Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reloaded(nil)
	m.reloads.Reset()
	for _, result := range []string{resultOK, resultError} {
		m.reloads.WithLabelValues(result)
	}
	return m
}

// Values of the label result.
const (
	resultOK    = "ok"
	resultError = "error"
)

// handler serves the metrics.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) message(one proxy.Message) {
	result := "passed"
	switch {
	case one.Refused:
		result = "refused"
	case one.Edited:
		result = "edited"
	}
	direction := directions[one.To]
	m.messages.WithLabelValues(direction, kinds[one.Kind], knownMethod(one.Method), result).Inc()
	m.bytes.WithLabelValues(direction).Add(float64(one.Size))
}

var directions = [...]string{proxy.ToServer: snake(proxy.ToServer.String()), proxy.ToClient: snake(proxy.ToClient.String())}

var kinds = map[rewrite.Kind]string{
	rewrite.KindRequest: "request", rewrite.KindNotification: "notification", rewrite.KindResult: "result",
	rewrite.KindError: "error", rewrite.KindInvalid: "invalid", rewrite.KindBatch: "batch",
}

func (m *metrics) decision(d proxy.Decision) {
	observed := "false"
	if d.Observed {
		observed = "true"
	}
	m.decisions.WithLabelValues(d.Rule, snake(d.Verdict), observed).Inc()
	if d.Rule == "icon" {
		m.icons.WithLabelValues(snake(d.Verdict)).Inc()
	}
}

func (m *metrics) answer(verdict string) { m.answers.WithLabelValues(snake(verdict)).Inc() }

func (m *metrics) call(c proxy.Call) {
	if c.To != proxy.ToServer {
		return
	}
	method := knownMethod(c.Method)
	m.duration.WithLabelValues(method).Observe(c.Duration.Seconds())
	if c.Outcome == proxy.CallAsked {
		m.rounds.WithLabelValues(method).Inc()
		return
	}
	m.operations.WithLabelValues(method, c.Outcome).Inc()
}

func (m *metrics) session(_ string, open bool) {
	if open {
		m.sessions.Inc()
	} else {
		m.sessions.Dec()
	}
}

func (m *metrics) fetch(i icon.FetchInfo) {
	m.fetches.WithLabelValues(reasonLabel(i.Reason)).Observe(i.Duration.Seconds())
}

func (m *metrics) decode(i icon.DecodeInfo) {
	m.decodings.WithLabelValues(i.Format, reasonLabel(i.Reason)).Observe(i.Duration.Seconds())
}

func (m *metrics) reloaded(fault error) {
	if fault != nil {
		m.reloads.WithLabelValues(resultError).Inc()
		m.reloadOK.Set(0)
		return
	}
	m.reloads.WithLabelValues(resultOK).Inc()
	m.reloadOK.Set(1)
	m.reloadTime.Set(float64(time.Now().Unix()))
}

// auditLines counts an audit's lines.
func (m *metrics) auditLines(a *audit) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "mcp_refit", Name: "audit_lines_total", Help: "Lines written to the audit."},
			func() float64 { return float64(a.written.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "mcp_refit", Name: "audit_dropped_lines_total", Help: "Lines that the audit had to drop."},
			func() float64 { return float64(a.dropped.Load()) }),
	)
}

func reasonLabel(r icon.Reason) string {
	if r == "" {
		return resultOK
	}
	return snake(string(r))
}

var labels = strings.NewReplacer(" ", "_", "-", "_")

// snake writes words as a label's value.
func snake(s string) string {
	return labels.Replace(s)
}

// knownMethod is a method of the protocol, of any revision, "" for a response
// whose request is not known, or "other".
func knownMethod(method string) string {
	if method == "" || methods[method] {
		return method
	}
	return "other"
}

var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "completion/complete": true, "logging/setLevel": true,
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"subscriptions/listen": true, "roots/list": true, "sampling/createMessage": true, "elicitation/create": true,
	"tasks/get": true, "tasks/result": true, "tasks/list": true, "tasks/cancel": true, "tasks/update": true,
	"notifications/initialized": true, "notifications/cancelled": true, "notifications/progress": true, "notifications/message": true,
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true, "notifications/resources/list_changed": true,
	"notifications/resources/updated": true, "notifications/roots/list_changed": true, "notifications/elicitation/complete": true,
	"notifications/tasks": true, "notifications/tasks/status": true, "notifications/subscriptions/acknowledged": true,
}
