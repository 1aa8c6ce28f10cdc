package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An issuer is an authorization server together with the MCP server that it
// protects, with everything that the specification asks of both.
type issuer struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	codes     map[string]url.Values // of authorization requests, by code
	valid     map[string]string     // access tokens to their scope
	refresh   map[string]string     // refresh tokens to their scope
	issued    int
	logins    int
	refreshes int
	deny      string        // error instead of a code
	lifetime  time.Duration // of an access token; 0: none is said
	wrongIss  bool
	documents bool         // it takes client ID metadata documents
	secret    string       // that a client has to show
	asked     []url.Values // the authorization requests
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, codes: map[string]url.Values{}, valid: map[string]string{}, refresh: map[string]string{}}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		i.json(w, map[string]any{"resource": i.URL + "/mcp", "authorization_servers": []string{i.URL}, "scopes_supported": []string{"read"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		method := "none"
		if i.secret != "" {
			method = "client_secret_post"
		}
		i.json(w, map[string]any{
			"client_id_metadata_document_supported": i.documents,
			"issuer":                                i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported":               []string{"S256"},
			"authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{method},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked["token_endpoint_auth_method"] != "none" || asked["application_type"] != "native" {
			t.Errorf("registration: %v, %v", asked, err)
		}
		asked["client_id"] = "client-1"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(asked)
	})
	mux.HandleFunc("/authorize", i.authorize)
	mux.HandleFunc("/token", i.token)
	mux.HandleFunc("/mcp", i.mcp)
	return i
}

func (i *issuer) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.logins++
	q := r.URL.Query()
	if q.Get("resource") != i.URL+"/mcp" || q.Get("code_challenge_method") != "S256" {
		i.t.Errorf("authorization request: %v", q)
	}
	i.asked = append(i.asked, q)
	code := fmt.Sprint("code-", i.logins)
	i.codes[code] = q
	iss := i.URL
	if i.wrongIss {
		iss = "https://evil.example"
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {iss}, "code": {code}}
	if i.deny != "" {
		back = url.Values{"state": {q.Get("state")}, "error": {i.deny}, "error_description": {"no\nluck"}}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = r.ParseForm()
	if r.Form.Get("client_secret") != i.secret {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		i.json(w, map[string]any{"error": "invalid_client"})
		return
	}
	scope := ""
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		q := i.codes[r.Form.Get("code")]
		delete(i.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if q == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || r.Form.Get("resource") != i.URL+"/mcp" {
			w.WriteHeader(http.StatusBadRequest)
			i.json(w, map[string]any{"error": "invalid_grant"})
			return
		}
		scope = q.Get("scope")
	case "refresh_token":
		i.refreshes++
		var ok bool
		if scope, ok = i.refresh[r.Form.Get("refresh_token")]; !ok {
			w.WriteHeader(http.StatusBadRequest)
			i.json(w, map[string]any{"error": "invalid_grant"})
			return
		}
		delete(i.refresh, r.Form.Get("refresh_token")) // each is good once
	}
	i.issued++
	access, refresh := fmt.Sprint("access-", i.issued), fmt.Sprint("refresh-", i.issued)
	i.valid[access], i.refresh[refresh] = scope, scope
	answer := map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "scope": scope}
	if i.lifetime > 0 {
		answer["expires_in"] = int(i.lifetime / time.Second)
	}
	i.json(w, answer)
}

func (i *issuer) mcp(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	scope, ok := i.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !ok:
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+i.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.Header.Get("Need") != "" && !strings.Contains(scope, r.Header.Get("Need")):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+r.Header.Get("Need")+`", resource_metadata="`+i.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusForbidden)
	case r.Header.Get("Forbid") != "":
		w.WriteHeader(http.StatusForbidden)
	}
}

// browse is a browser whose user agrees with everything.
func browse(address string) error {
	go func() {
		if res, err := http.Get(address); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}()
	return nil
}

func (i *issuer) login(dir string) *Login {
	u, err := url.Parse(i.URL + "/mcp")
	if err != nil {
		i.t.Fatal(err)
	}
	return &Login{URL: u, Dir: dir, Open: browse}
}

// call sends a request as the bridge does, with logins where it is told so.
func (i *issuer) call(ctx context.Context, l *Login, header ...string) error {
	for range 3 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL.String(), nil)
		if err != nil {
			return err
		}
		for n := 0; n < len(header); n += 2 {
			req.Header.Set(header[n], header[n+1])
		}
		token, err := l.Token(ctx)
		if err != nil {
			return err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		if err := l.Authorize(ctx, res); err != nil {
			return err
		}
	}
	return errors.New("refused three times")
}

func TestLogin(t *testing.T) {
	i := newIssuer(t)
	dir := t.TempDir()
	var out bytes.Buffer
	l := i.login(dir)
	l.Out = &out
	if token, err := l.Token(t.Context()); token != "" || err != nil {
		t.Errorf("before a login: %q, %v", token, err)
	}
	if err := i.call(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), i.URL+"/authorize?") {
		t.Errorf("the user was told %q", out.String())
	}
	if strings.Contains(out.String(), "access-") || strings.Contains(out.String(), "refresh-") {
		t.Errorf("a token was told: %q", out.String())
	}
	// Another process finds it, and no other server does.
	if token, err := i.login(dir).Token(t.Context()); token != "access-1" || err != nil {
		t.Errorf("another process got %q, %v", token, err)
	}
	other := i.login(dir)
	other.URL = other.URL.JoinPath("other")
	if token, err := other.Token(t.Context()); token != "" || err != nil {
		t.Errorf("another server got %q, %v", token, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}

// TestClientID: which client logs in, and where the login comes back to.
func TestClientID(t *testing.T) {
	const document = "https://client.example/metadata.json"
	tests := []struct {
		name         string
		documents    bool
		serverSecret string
		id, secret   string
		want, fails  string
	}{
		{"none is given", true, "", "", "", "client-1", ""},
		{"a document", true, "", document, "", document, ""},
		{"a document, where none are taken", false, "", document, "", "client-1", ""},
		{"a registered client", true, "", "by-hand", "", "by-hand", ""},
		{"with a secret", true, "hunter2", "by-hand", "hunter2", "by-hand", ""},
		{"with the wrong secret", true, "hunter2", "by-hand", "other", "by-hand", "invalid_client"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newIssuer(t)
			i.documents, i.secret = tt.documents, tt.serverSecret
			dir := t.TempDir()
			l := i.login(dir)
			l.ClientID, l.ClientSecret = tt.id, tt.secret
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := free.Addr().(*net.TCPAddr)
			l.Port = address.Port
			if err := i.call(t.Context(), l); err == nil || !strings.Contains(err.Error(), "no port for the login") {
				t.Errorf("where the port is taken: %v", err)
			}
			free.Close()
			err = i.call(t.Context(), l)
			if (err == nil) != (tt.fails == "") || err != nil && (!strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), tt.serverSecret)) {
				t.Fatalf("%v, want %q", err, tt.fails)
			}
			asked := i.asked[0]
			if got, back := asked.Get("client_id"), asked.Get("redirect_uri"); got != tt.want || back != "http://"+address.String()+"/callback" {
				t.Errorf("%s logs in, and back to %s", got, back)
			}
			if tt.fails != "" {
				return
			}
			again := i.login(dir)
			again.ClientID = tt.id
			if token, err := again.Token(t.Context()); token != "access-1" || err != nil {
				t.Errorf("the same client has %q, %v", token, err)
			}
			again = i.login(dir)
			again.ClientID = "another"
			if token, err := again.Token(t.Context()); token != "" || err != nil {
				t.Errorf("another client has %q, %v", token, err)
			}
		})
	}
}

// TestLoginOnce: one login serves all that wait for it, in this process and in others.
func TestLoginOnce(t *testing.T) {
	i := newIssuer(t)
	dir := t.TempDir()
	var logins []*Login
	for range 4 {
		l := i.login(dir)
		logins = append(logins, l, l, l)
	}
	errs := make(chan error)
	for _, l := range logins {
		go func() { errs <- i.call(t.Context(), l) }()
	}
	for range logins {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if i.logins != 1 {
		t.Errorf("%d logins", i.logins)
	}
}

// TestRefresh: a token that ends is refreshed, once for all processes, and the
// new refresh token is kept.
func TestRefresh(t *testing.T) {
	i := newIssuer(t)
	i.lifetime = early / 2 // too old as soon as it is there
	dir := t.TempDir()
	if err := i.call(t.Context(), i.login(dir)); err == nil || i.logins == 0 {
		t.Log("the token was never fresh: ", err)
	}
	i.mu.Lock()
	i.lifetime, i.logins, i.refreshes = time.Hour, 0, 0
	i.mu.Unlock()
	errs := make(chan error)
	for range 8 {
		go func() { errs <- i.call(t.Context(), i.login(dir)) }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if i.logins != 0 || i.refreshes != 1 {
		t.Errorf("%d logins, %d refreshes", i.logins, i.refreshes)
	}
	// A token that the server takes no more is refreshed, and where that is
	// refused the user logs in again.
	l := i.login(dir)
	i.mu.Lock()
	clear(i.valid)
	i.mu.Unlock()
	if err := i.call(t.Context(), l); err != nil || i.logins != 0 || i.refreshes != 2 {
		t.Errorf("%v, %d logins, %d refreshes", err, i.logins, i.refreshes)
	}
	i.mu.Lock()
	clear(i.valid)
	clear(i.refresh)
	i.mu.Unlock()
	if err := i.call(t.Context(), l); err != nil || i.logins != 1 {
		t.Errorf("%v, %d logins", err, i.logins)
	}
}

// TestStepUp: a call that needs another scope asks for both.
func TestStepUp(t *testing.T) {
	i := newIssuer(t)
	dir := t.TempDir()
	if err := i.call(t.Context(), i.login(dir)); err != nil {
		t.Fatal(err)
	}
	l := i.login(dir)
	if err := i.call(t.Context(), l, "Need", "write"); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(i.valid["access-2"])
	slices.Sort(got)
	if strings.Join(got, " ") != "read write" {
		t.Errorf("scope %q", got)
	}
	if err := i.call(t.Context(), l, "Forbid", "1"); err == nil || !strings.Contains(err.Error(), "asks for no other scope") {
		t.Errorf("what is forbidden: %v", err)
	}
	if i.logins != 2 {
		t.Errorf("%d logins", i.logins)
	}
}

func TestLoginFails(t *testing.T) {
	tests := []struct {
		name string
		set  func(*issuer, *Login)
		says string
	}{
		{"the user refuses", func(i *issuer, _ *Login) { i.deny = "access_denied" }, "access_denied no luck"},
		{"another issuer answers", func(i *issuer, _ *Login) { i.wrongIss = true }, "issuer"},
		{"nobody logs in", func(_ *issuer, l *Login) {
			l.Open, l.Timeout = func(string) error { return errors.New("no browser") }, 50*time.Millisecond
		}, "nobody has logged in"},
		{"another page answers", func(_ *issuer, l *Login) {
			l.Timeout = 200 * time.Millisecond
			l.Open = func(address string) error {
				u, _ := url.Parse(address)
				for _, q := range []string{"?code=x&state=wrong", "?code=x", "", "?code=x&state="} {
					res, err := http.Get(u.Query().Get("redirect_uri") + q)
					if err != nil || res.StatusCode != http.StatusBadRequest {
						return fmt.Errorf("%v, %v", res, err)
					}
					res.Body.Close()
				}
				return nil
			}
		}, "nobody has logged in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newIssuer(t)
			l := i.login(t.TempDir())
			tt.set(i, l)
			err := i.call(t.Context(), l)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q is more than a line", err)
			}
		})
	}
}

// TestBadFile: what is kept and can't be used is no login, and is replaced.
func TestBadFile(t *testing.T) {
	i := newIssuer(t)
	for _, content := range []string{"", "{", `{"server":"https://other.example/","access_token":"stolen"}`} {
		l := i.login(t.TempDir())
		file, err := l.file()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := l.Token(t.Context()); token != "" || err != nil {
			t.Errorf("%q: %q, %v", content, token, err)
		}
		if err := i.call(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
}

// TestTokenLooksOnce: where there is no login, only the first call looks for one.
func TestTokenLooksOnce(t *testing.T) {
	l := newIssuer(t).login(filepath.Join(t.TempDir(), "tokens"))
	for call := range 2 {
		if token, err := l.Token(t.Context()); token != "" || err != nil {
			t.Fatalf("%q, %v", token, err)
		}
		if _, err := os.Stat(l.Dir); (err == nil) != (call == 0) {
			t.Errorf("call %d: the folder: %v", call, err)
		}
		if err := os.RemoveAll(l.Dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrowserCommand(t *testing.T) {
	const u = "https://as.example/authorize?a=1&b=$(x)"
	for goos, want := range map[string]string{"darwin": "open", "windows": "rundll32", "linux": "xdg-open", "freebsd": "xdg-open"} {
		argv := browserCommand(goos, u)
		if argv[0] != want || argv[len(argv)-1] != u {
			t.Errorf("%s: %q", goos, argv)
		}
	}
}

func TestCanonical(t *testing.T) {
	same := []string{"https://S.example/mcp", "HTTPS://s.example/mcp", "https://user:pw@s.example/mcp#x"}
	for _, s := range same {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := canonical(u); got != "https://s.example/mcp" {
			t.Errorf("%s: %s", s, got)
		}
	}
	for _, s := range []string{"http://s.example/mcp", "https://s.example/mcp/", "https://s.example:8443/mcp", "https://s.example/mcp?t=1"} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if canonical(u) == "https://s.example/mcp" {
			t.Errorf("%s is another server", s)
		}
	}
}
