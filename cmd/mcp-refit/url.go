package main

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/login"
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// loginRequestTimeout is how long a request to an authorization server may take.
const loginRequestTimeout = 30 * time.Second

// serveURL carries the messages between our own stdio and the server at a URL.
func serveURL(ctx context.Context, px *proxy.Proxy, c *policy.Config, u *url.URL, std stdio) error {
	if err := upstream(px, c, u); err != nil {
		return err
	}
	if !c.HTTP.NoLogin && px.Header.Get("Authorization") == "" {
		px.Authorizer = &login.Login{
			URL: u, Out: std.err,
			Client: &http.Client{Transport: px.Transport, Timeout: loginRequestTimeout},
		}
	}
	err := px.RunURL(ctx, proxy.Stream{R: std.in, W: nopCloser{std.out}})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
