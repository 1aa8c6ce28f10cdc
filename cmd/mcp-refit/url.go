package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/login"
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// loginRequestTimeout is how long a request to an authorization server may take.
const loginRequestTimeout = 30 * time.Second

// loginAt is the login at a server.
func loginAt(u *url.URL, c policy.HTTPConfig, env func(string) (string, bool)) (*login.Login, error) {
	l := &login.Login{URL: u, ClientID: c.ClientID, Port: int(c.LoginPort)}
	if l.ClientID != "" && !login.ValidClientID(l.ClientID) {
		return nil, usagef("--client-id: the URL of a client ID metadata document is https, and has a path")
	}
	if c.SecretEnv == "" {
		return l, nil
	}
	if l.ClientID == "" {
		return nil, usagef("--client-secret-env: there is no --client-id that the secret is for")
	}
	if l.ClientSecret, _ = env(c.SecretEnv); l.ClientSecret == "" {
		return nil, usagef("--client-secret-env: the environment has no variable %s", c.SecretEnv)
	}
	return l, nil
}

// serveURL carries the messages between our own stdio and the server at a URL.
func serveURL(ctx context.Context, px *proxy.Proxy, c *policy.Config, u *url.URL, std stdio) error {
	if err := upstream(px, c, u); err != nil {
		return err
	}
	if !c.HTTP.NoLogin && px.Header.Get("Authorization") == "" {
		l, err := loginAt(u, c.HTTP, os.LookupEnv)
		if err != nil {
			return err
		}
		l.Out, l.Client = std.err, &http.Client{Transport: px.Transport, Timeout: loginRequestTimeout}
		px.Authorizer = l
	}
	err := px.RunURL(ctx, proxy.Stream{R: std.in, W: nopCloser{std.out}})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
