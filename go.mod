module github.com/mcp-refit/mcp-refit

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/miekg/dns v1.1.73
	go.uber.org/goleak v1.3.0
	golang.org/x/image v0.48.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.50.0
	golang.org/x/time v0.16.0
)

require golang.org/x/text v0.44.0 // indirect
