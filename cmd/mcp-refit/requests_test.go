package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends a request, to be answered.
func ask(t *testing.T, c *http.Client, method, url, session, body string) (*http.Response, string) {
	t.Helper()
	res, text, err := send(c, method, url, session, body)
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

func send(c *http.Client, method, url, session, body string) (*http.Response, string, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	res, err := c.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

// answers sends a message, and sees that the answer holds what is given.
func answers(c *http.Client, url, session, message, holds string) error {
	res, text, err := send(c, http.MethodPost, url, session, message)
	if err == nil && (res.StatusCode != http.StatusOK || !strings.Contains(text, holds)) {
		err = fmt.Errorf("%s %s", res.Status, text)
	}
	return err
}
