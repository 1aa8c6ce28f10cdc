// Command otlp-receiver is the OpenTelemetry collector's receiver of OTLP over
// HTTP, and nothing behind it: each export that it accepts is one line of
// OTLP/JSON on stdout.
//
//	otlp-receiver HOST:PORT
//
// It listens until SIGINT or SIGTERM. It is a module of its own, so that what
// the collector requires is not required of who builds mcp-refit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "otlp-receiver:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: otlp-receiver HOST:PORT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	factory := otlpreceiver.NewFactory()
	config, ok := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	if !ok {
		return errors.New("the receiver's configuration is of another type")
	}
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = args[0]
	next, err := consumer.NewTraces(printTo(out))
	if err != nil {
		return err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	traces, err := factory.CreateTraces(ctx, settings, config, next)
	if err != nil {
		return err
	}
	if err := traces.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	<-ctx.Done()
	return traces.Shutdown(context.Background())
}

// printTo writes each export as a line, one at a time.
func printTo(out io.Writer) consumer.ConsumeTracesFunc {
	var mu sync.Mutex
	return func(_ context.Context, traces ptrace.Traces) error {
		line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = out.Write(append(line, '\n'))
		return err
	}
}
