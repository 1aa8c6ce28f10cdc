package main

import (
	"context"
	"net/url"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// serveChildren serves over HTTP a server that speaks stdio. running is told
// how many children there are.
func serveChildren(ctx context.Context, px *proxy.Proxy, p *policy.Policy, t *target, std stdio, log *zap.Logger, running func(int)) error {
	c := p.Config
	children := &proxy.ChildTransport{
		Start: func() (*proxy.Child, error) {
			child := newChild(p, t, std, log)
			return child, child.Start(context.WithoutCancel(ctx))
		},
		Path:       c.HTTP.Path,
		Children:   int(c.Limits.Children),
		FullText:   c.Limits.ChildrenFull,
		Idle:       c.Limits.SessionIdle.Std(),
		Lifetime:   c.Limits.ChildLifetime.Std(),
		Replay:     int(c.Limits.ReplayEvents),
		MaxMessage: int64(c.Limits.MaxMessage),
		Proxy:      px,
		Log:        log,
		OnStray:    px.OnStray,
		OnChildren: running,
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
