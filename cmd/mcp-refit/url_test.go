package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestURLCredentials: what a server is sent, and what the client is told where
// that is not enough.
func TestURLCredentials(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	t.Setenv("REFIT_TEST_TOKEN", "hunter2")
	tests := []struct {
		name  string
		flags []string
		sent  string // Authorization
		says  []string
		code  int
	}{
		{"none", []string{"--no-login"}, "", []string{`"id":1,"error"`, "wants a login (401", "--token-env", "leave out --no-login"}, 0},
		{"a token", []string{"--token-env", "REFIT_TEST_TOKEN"}, "Bearer hunter2", []string{`"id":1,"error"`, "refuses the credentials (401"}, 0},
		{"a header", []string{"-H", "Authorization: Basic eDp5"}, "Basic eDp5", []string{"refuses the credentials (401"}, 0},
		{"a client's secret without a client", []string{"--client-secret-env", "REFIT_TEST_TOKEN"}, "", []string{"no --client-id"}, exitUsage},
		{"no such secret", []string{"--client-id", "x", "--client-secret-env", "REFIT_TEST_NONE"}, "", []string{"REFIT_TEST_NONE"}, exitUsage},
		{"a document without a path", []string{"--client-id", "https://client.example"}, "", []string{"--client-id", "has a path"}, exitUsage},
		{"no such variable", []string{"--token-env", "REFIT_TEST_NONE"}, "", []string{"REFIT_TEST_NONE"}, exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := "nothing"
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = r.Header.Get("Authorization")
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer server.Close()
			var out, log bytes.Buffer
			code := run(t.Context(), append(tt.flags, server.URL+"/mcp"), stdio{strings.NewReader(hello), &out, &log})
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, log.Bytes())
			}
			told := out.String()
			if tt.code != 0 {
				told = log.String()
			} else if sent != tt.sent {
				t.Errorf("the server was sent %q, want %q", sent, tt.sent)
			}
			for _, s := range tt.says {
				if !strings.Contains(told, s) {
					t.Errorf("%q does not say %q", told, s)
				}
			}
			if strings.Contains(out.String()+log.String(), "hunter2") {
				t.Error("the token was told")
			}
		})
	}
}
