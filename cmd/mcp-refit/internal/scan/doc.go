// Package scan collects what mcp-refit would do with the messages of a server,
// and reports it.
//
// A [Collector] listens to the hooks of a proxy.Proxy that only observes: what
// it is told is what the proxy's own pipeline decides, so that a report cannot
// say anything else than what happens when the proxy runs in earnest. Beside
// that it looks into the messages for what clients stumble over without any
// need of ours to decide: lists that can't be read, stray lines on stdout,
// names that stand twice.
//
// A [Report] is written as text, JSON, SARIF 2.1.0 or one HTML page.
package scan
