package main

import (
	"context"
	"errors"
	"net/url"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// serveChildren serves over HTTP a server that speaks stdio. running is told
// how many children there are.
func serveChildren(ctx context.Context, px *proxy.Proxy, p *policy.Policy, t *target, log *zap.Logger, health *health, running func(int)) error {
	c := p.Config
	children := &proxy.ChildTransport{
		Start:      health.start,
		Path:       c.HTTP.Path,
		Children:   int(c.Limits.Children),
		FullText:   c.Limits.ChildrenFull,
		Idle:       c.Limits.SessionIdle.Std(),
		Lifetime:   c.Limits.ChildLifetime.Std(),
		Replay:     int(c.Limits.ReplayEvents),
		Proxy:      px,
		Log:        log,
		OnStray:    px.OnStray,
		OnChildren: running,
		OnSilentEnd: func(how string) {
			health.set(errors.New("the server " + how + " before it said anything"))
		},
	}
	defer children.Close()
	px.Transport = children
	px.Upstream = &url.URL{Scheme: "stdio", Host: "child", Path: c.HTTP.Path}
	l, err := listen(ctx, px, c, log)
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("serving", zap.Stringer("address", l.Addr()), zap.String("path", c.HTTP.Path), zap.Strings("command", t.command))
	return serveHTTP(ctx, l, maxConnections, px, px.Drain, c, log)
}
