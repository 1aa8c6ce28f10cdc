package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Login is the login at one server. Set the fields before the first use. It
// is safe for concurrent use.
type Login struct {
	// URL is the MCP endpoint of the server.
	URL *url.URL

	// ClientID is the OAuth client that logs in: the id of one that was
	// registered by hand, or the https URL of a client ID metadata document
	// (MCP 2025-11-25, SEP-991). Empty, or where an authorization server takes
	// no such documents: one is registered there (RFC 7591).
	ClientID string

	// ClientSecret is the secret of ClientID. Empty: it has none.
	ClientSecret string

	// Port is the port of 127.0.0.1 that the login comes back to, at /callback.
	// 0 is any, which an authorization server must allow (RFC 8252, section
	// 7.3); some do not, and want the one that the client was registered with.
	Port int

	// Dir is where the tokens are kept. Empty: [DefaultDir].
	Dir string

	// Open opens a URL in the user's browser. nil: the system's way. Whether
	// it works or not, the URL is written to Out, too.
	Open func(url string) error

	// Out is where the user is told what to do. nil: nowhere.
	Out io.Writer

	// Client speaks with the authorization server. nil: one of 30 seconds.
	Client *http.Client

	// Timeout is how long the user may take. 0: [DefaultTimeout]; negative:
	// as long as he likes.
	Timeout time.Duration

	busy   waitLock // of token, looked, and of the login
	token  *stored  // what was read or obtained last
	looked bool     // whether the file was read for it
}

// DefaultTimeout is how long a user may take for a login.
const DefaultTimeout = 10 * time.Minute

// early is how long before its end a token is refreshed.
const early = 30 * time.Second

// Token is the token for the server, empty if there is none: then the server
// is to say what it wants. The file is looked into once, and by Authorize each
// time, so that a server which wants no token costs no file access a call.
func (l *Login) Token(ctx context.Context) (string, error) {
	if err := l.busy.lock(ctx); err != nil {
		return "", err
	}
	defer l.busy.unlock()
	if l.token == nil && !l.looked {
		s, err := l.load()
		if err != nil {
			return "", err
		}
		l.token, l.looked = s, true
	}
	if l.token == nil {
		return "", nil
	}
	if l.token.fresh() {
		return l.token.Access, nil
	}
	release, err := l.lockFile(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if s, err := l.load(); err == nil && s != nil {
		l.token = s // another process may have refreshed it
	}
	if l.token.fresh() {
		return l.token.Access, nil
	}
	return l.refresh(ctx)
}

// refresh obtains a new token for an old one. It is empty if the server must
// ask for a login again. The file is locked.
func (l *Login) refresh(ctx context.Context) (string, error) {
	old := l.token
	if old.Refresh == "" {
		return "", nil
	}
	source := old.config().TokenSource(l.withClient(ctx), &oauth2.Token{RefreshToken: old.Refresh})
	token, err := source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		dead := *old
		dead.Refresh = ""
		l.token = &dead
		return "", nil // it is not good any more
	case err != nil:
		return "", errors.New("the token could not be refreshed: " + plain(err))
	}
	next := old.with(token)
	l.token = next
	return next.Access, l.save(next)
}

// Authorize obtains a token that serves better than the one that res.Request
// carried: another process's, a refreshed one, or by a login.
func (l *Login) Authorize(ctx context.Context, res *http.Response) error {
	used := strings.TrimPrefix(res.Request.Header.Get("Authorization"), "Bearer ")
	stepUp, err := wantsScope(res)
	if err != nil {
		return err
	}
	if err := l.busy.lock(ctx); err != nil {
		return err
	}
	defer l.busy.unlock()
	if l.token != nil && l.token.Access != used {
		return nil // obtained while this request was under way
	}
	if wait := l.timeout(); wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	release, err := l.lockFile(ctx)
	if err != nil {
		return fmt.Errorf("another process is logging in: %w", err)
	}
	defer release()
	switch s, err := l.load(); {
	case err != nil:
		return err
	case s != nil:
		l.token = s
		if s.Access != used && s.fresh() {
			return nil
		}
		if !stepUp {
			if token, err := l.refresh(ctx); err != nil || token != "" {
				return err
			}
		}
	}
	return l.interactive(ctx, res)
}

// wantsScope reports whether the server wants a token of more scope. What else
// is forbidden, no login helps.
func wantsScope(res *http.Response) (bool, error) {
	if res.StatusCode != http.StatusForbidden {
		return false, nil
	}
	challenges, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err == nil && slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" }) {
		return true, nil
	}
	return false, fmt.Errorf("the server forbids this (%s), and asks for no other scope", res.Status)
}

// interactive sends the user to the login. The file is locked.
func (l *Login) interactive(ctx context.Context, res *http.Response) error {
	redirect, err := listen(l.Port)
	if err != nil {
		return err
	}
	defer redirect.close()
	scopes := []string(nil)
	if l.token != nil {
		scopes = l.token.Scopes
	}
	var obtained *stored
	document, registered := l.clients()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: document,
		PreregisteredClient:            registered,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName:              "mcp-refit",
			RedirectURIs:            []string{redirect.url},
			GrantTypes:              []string{"authorization_code", "refresh_token"},
			ResponseTypes:           []string{"code"},
			TokenEndpointAuthMethod: "none", // there is no secret on a user's machine
		}},
		RedirectURL:           redirect.url,
		RequestRefreshToken:   true,
		AcceptUnadvertisedIss: true,
		ScopeFilter:           func(asked []string) []string { return union(scopes, asked) },
		Client:                l.client(),
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return l.send(ctx, redirect, args.URL)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			obtained = newStored(l.URL, c, t)
			return oauth2.StaticTokenSource(t), nil
		},
	})
	if err != nil {
		return err
	}
	// The SDK closes the body, and looks at the URL of the request for the
	// resource.
	req := res.Request.Clone(ctx)
	req.URL = l.resource()
	res.Body = io.NopCloser(strings.NewReader(""))
	if err := handler.Authorize(ctx, req, res); err != nil {
		if ctx.Err() != nil {
			return errors.New("nobody has logged in")
		}
		return errors.New(plain(err))
	}
	if obtained == nil {
		return errors.New("the authorization server gave no token")
	}
	l.token = obtained
	return l.save(obtained)
}

// clients are what ClientID means: a document, or a client that is registered.
func (l *Login) clients() (*auth.ClientIDMetadataDocumentConfig, *oauthex.ClientCredentials) {
	switch {
	case l.ClientID == "":
		return nil, nil
	case isDocument(l.ClientID):
		return &auth.ClientIDMetadataDocumentConfig{URL: l.ClientID}, nil
	}
	registered := &oauthex.ClientCredentials{ClientID: l.ClientID}
	if l.ClientSecret != "" {
		registered.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.ClientSecret}
	}
	return nil, registered
}

// isDocument reports whether a client's id is the URL of a document.
func isDocument(id string) bool {
	return strings.HasPrefix(id, "https:") || strings.HasPrefix(id, "http:")
}

// ValidClientID reports whether a text can be a client's id: if it is a URL,
// it is https and has a path.
func ValidClientID(id string) bool {
	if !isDocument(id) {
		return true
	}
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// send sends the user to the login, and waits for what comes back.
func (l *Login) send(ctx context.Context, r *redirect, to string) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the authorization server names no page to log in at")
	}
	r.expect(u.Query().Get("state"))
	if l.Out != nil {
		fmt.Fprintf(l.Out, "mcp-refit: to log in at %s, open this page:\n\n  %s\n\n", l.URL.Host, to)
	}
	open := l.Open
	if open == nil {
		open = openBrowser
	}
	_ = open(to) // the user has been told
	return r.wait(ctx)
}

// resource is the URL as a resource's identifier: without user, query and
// fragment.
func (l *Login) resource() *url.URL {
	u := *l.URL
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return &u
}

func (l *Login) timeout() time.Duration {
	if l.Timeout == 0 {
		return DefaultTimeout
	}
	return l.Timeout
}

func (l *Login) client() *http.Client {
	if l.Client != nil {
		return l.Client
	}
	return &http.Client{Timeout: 30 * time.Second}
}

func (l *Login) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, l.client())
}

// union is a followed by those of b that are not in it.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// plain is an error's text without what an authorization server may have put
// into its answer: a token could be in it.
func plain(err error) string {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		var of *url.Error
		if errors.As(err, &of) { // a query may hold a code
			return of.Op + ": " + of.Err.Error()
		}
		return err.Error()
	}
	text := "the authorization server refused"
	if refused.ErrorCode != "" {
		text += ": " + refused.ErrorCode
	}
	if refused.ErrorDescription != "" {
		text += " (" + refused.ErrorDescription + ")"
	}
	return text
}
