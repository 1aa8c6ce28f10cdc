package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// An Authorizer obtains the credentials for Upstream. It is called by many
// goroutines at once.
type Authorizer interface {
	// Token is the bearer token to send, empty for none.
	Token(ctx context.Context) (string, error)

	// Authorize obtains a token that serves better than the one that
	// res.Request carried. res is the server's 401 or 403. It may wait for a
	// human. If it returns nil, the request is sent once more.
	Authorize(ctx context.Context, res *http.Response) error
}

// An authError is why there are no credentials.
type authError struct{ text string }

func (e *authError) Error() string { return e.text }

// maxLogins is how often the credentials for one message are asked for: a
// login, and one more where the server wants a wider scope.
const maxLogins = 2

// credentials adds to a request's header what identifies the client, and what
// the user adds to every request.
func (r *remote) credentials(ctx context.Context, h http.Header) error {
	r.proxy.upstreamHeader(h)
	if r.proxy.Authorizer == nil || h.Get("Authorization") != "" {
		return nil
	}
	token, err := r.proxy.Authorizer.Token(ctx)
	if err != nil {
		return &authError{"there is no token for the server: " + err.Error()}
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// authorize deals with a server that wants credentials, or others.
func (r *remote) authorize(p *post, res *http.Response) (again bool, err error) {
	given := r.proxy.Header.Get("Authorization") != ""
	switch {
	case res.StatusCode == http.StatusForbidden && (given || r.proxy.Authorizer == nil):
		return false, fmt.Errorf("the server at %s forbids this (%s): check what the credentials allow", originOf(r.proxy.Upstream), res.Status)
	case given:
		return false, fmt.Errorf("the server at %s refuses the credentials (%s): check the token that --token-env or -H 'Authorization: …' gives; it may have expired", originOf(r.proxy.Upstream), res.Status)
	case r.proxy.Authorizer == nil:
		return false, fmt.Errorf("the server at %s wants a login (%s): name a variable that holds a token with --token-env, set -H 'Authorization: Bearer …', or leave out --no-login", originOf(r.proxy.Upstream), res.Status)
	case p.logins >= maxLogins:
		return false, fmt.Errorf("the server at %s refuses the login's token (%s): check what the account may do there", originOf(r.proxy.Upstream), res.Status)
	}
	r.mu.Lock()
	p.logins++
	r.mu.Unlock()
	if err := r.proxy.Authorizer.Authorize(p.ctx, res); err != nil {
		if r.ctx.Err() != nil {
			return false, r.unreachable(p, err)
		}
		return false, errors.New("the login at the server failed: " + err.Error())
	}
	return true, nil
}
