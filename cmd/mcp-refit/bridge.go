package main

import (
	"context"
	"errors"
	"net/url"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// childLimits are a policy's bounds on the sessions of children.
func childLimits(l *policy.LimitsConfig) proxy.ChildLimits {
	return proxy.ChildLimits{
		Children: int(l.Children),
		FullText: l.ChildrenFull,
		Idle:     l.SessionIdle.Std(),
		Lifetime: l.ChildLifetime.Std(),
		Replay:   int(l.ReplayEvents),
	}
}

// serveChildren serves over HTTP a server that speaks stdio.
func serveChildren(ctx context.Context, px *proxy.Proxy, p *policy.Policy, t *target, log *zap.Logger, health *health, watching *watching) error {
	c := p.Config
	children := &proxy.ChildTransport{
		Start:      health.start,
		Path:       c.HTTP.Path,
		Limits:     func() proxy.ChildLimits { return childLimits(&px.Policy().Config.Limits) },
		Proxy:      px,
		Log:        log,
		OnStray:    px.OnStray,
		OnChildren: watching.children,
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
	return serveHTTP(ctx, l, connections(log), px, px.Drain, watching.certs, c, log)
}
