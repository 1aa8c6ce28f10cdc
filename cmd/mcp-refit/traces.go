package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// traces makes a span of every request, as a child of the span whose context
// came with it. Nothing of a message is changed, so a server's span is its
// sibling. Names are those of OpenTelemetry's semantic conventions for MCP.
type traces struct {
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	transport string // network.transport
}

// tracesWanted reports whether the environment asks for traces, by the
// variables that OpenTelemetry has for it.
func tracesWanted(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || env("OTEL_TRACES_EXPORTER") == "otlp"
}

// otlpProtocol is the only protocol of OTLP that is spoken.
const otlpProtocol = "http/protobuf"

// newTraces sends spans to where the environment says.
func newTraces(ctx context.Context, transport string, log *zap.Logger) (*traces, error) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != otlpProtocol {
			log.Warn("traces are sent as "+otlpProtocol, zap.String(name, p))
			break
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", zap.Error(err)) }))
	client, err := newOTLPClient(os.Getenv)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "mcp-refit"), attribute.String("service.version", versionText())),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv()) // what it says stands
	if err != nil {
		log.Warn("traces", zap.Error(err))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &traces{provider, provider.Tracer("github.com/mcp-refit/mcp-refit"), transport}, nil
}

// call makes the span of a request that is over.
func (t *traces) call(c proxy.Call) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": c.TraceParent, "tracestate": c.TraceState,
	})
	kind := trace.SpanKindServer
	if c.To == proxy.ToClient {
		kind = trace.SpanKindClient
	}
	name, attributes := c.Method, []attribute.KeyValue{
		attribute.String("mcp.method.name", c.Method),
		attribute.String("network.transport", t.transport),
	}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	add("mcp.protocol.version", c.Revision)
	add("mcp.session.id", c.Session)
	switch c.Method {
	case "tools/call":
		name += " " + c.Target
		add("gen_ai.operation.name", "execute_tool")
		add("gen_ai.tool.name", c.Target)
	case "prompts/get":
		name += " " + c.Target
		add("gen_ai.prompt.name", c.Target)
	}
	add("mcp_refit.outcome", c.Outcome)
	failure := ""
	switch c.Outcome {
	case proxy.CallAnswered, proxy.CallAsked:
	case proxy.CallFailed:
		failure = strconv.Itoa(c.Code)
		add("rpc.response.status_code", failure)
	default:
		failure = c.Outcome
	}
	add("error.type", failure)
	_, span := t.tracer.Start(ctx, strings.TrimSpace(name), trace.WithTimestamp(c.Start), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	if failure != "" {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(c.Start.Add(c.Duration)))
}

// close sends what is left, for at most that long.
func (t *traces) close(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
