package main

import (
	"context"
	"net/url"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// serveURL carries the messages between our own stdio and the server at a URL.
func serveURL(ctx context.Context, px *proxy.Proxy, c *policy.Config, u *url.URL, std stdio) error {
	if err := upstream(px, c, u); err != nil {
		return err
	}
	err := px.RunURL(ctx, proxy.Stream{R: std.in, W: nopCloser{std.out}})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
