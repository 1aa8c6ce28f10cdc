package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// A redirect waits on a port of this machine for the user's browser to come
// back from the login.
type redirect struct {
	url    string
	server *http.Server
	got    chan outcome

	mu    sync.Mutex
	state string // of the login that is under way
}

type outcome struct {
	result *auth.AuthorizationResult
	err    error
}

const redirectPath = "/callback"

// listen opens the port, any if it is 0. It is on 127.0.0.1, and not on
// localhost, which may be another address (RFC 8252, section 8.3).
func listen(port int) (*redirect, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("there is no port for the login to come back to: %w", err)
	}
	r := &redirect{url: "http://" + l.Addr().String() + redirectPath, got: make(chan outcome, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *redirect) close() {
	// The page that tells the user is still on its way.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		_ = r.server.Close()
	}
}

// expect says which login is under way.
func (r *redirect) expect(state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
}

func (r *redirect) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case o := <-r.got:
		return o.result, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP takes the answer. Any page that the user has open can send requests
// here, so those without the state of this login are nothing to it.
func (r *redirect) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	r.mu.Lock()
	state := r.state
	r.mu.Unlock()
	if req.URL.Path != redirectPath || req.Method != http.MethodGet {
		http.NotFound(w, req)
		return
	}
	if state == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
		page(w, http.StatusBadRequest, "This is not the login that is under way.")
		return
	}
	o := outcome{result: &auth.AuthorizationResult{Code: q.Get("code"), State: state, Iss: q.Get("iss")}}
	text := "You are logged in. You can close this page."
	switch code := q.Get("error"); {
	case code != "":
		o = outcome{err: errors.New("the authorization server refused: " + clean(strings.TrimSpace(code+" "+q.Get("error_description"))))}
		text = "The login was refused: " + code
	case q.Get("code") == "":
		o = outcome{err: errors.New("the authorization server sent no code")}
		text = "The login has failed."
	}
	select {
	case r.got <- o:
	default: // the page was loaded twice
	}
	page(w, http.StatusOK, text)
}

// clean makes a text that came in a URL fit for a line.
func clean(s string) string {
	const most = 300 // bytes
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!doctype html><title>mcp-refit</title><p>"+html.EscapeString(text)+"</p>\n")
}
