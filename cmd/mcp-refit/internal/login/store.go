package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"
)

// stored is what is kept of a login: the file of one server.
type stored struct {
	Server   string           `json:"server"` // its URL
	AuthURL  string           `json:"authorization_endpoint"`
	TokenURL string           `json:"token_endpoint"`
	Style    oauth2.AuthStyle `json:"auth_style"`
	ClientID string           `json:"client_id"`
	Secret   string           `json:"client_secret,omitempty"`
	Scopes   []string         `json:"scopes,omitempty"`

	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
}

func newStored(server *url.URL, c *oauth2.Config, t *oauth2.Token) *stored {
	s := &stored{
		Server: canonical(server), AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL, Style: c.Endpoint.AuthStyle,
		ClientID: c.ClientID, Secret: c.ClientSecret, Scopes: c.Scopes,
	}
	if granted, _ := t.Extra("scope").(string); granted != "" {
		s.Scopes = strings.Fields(granted)
	}
	return s.with(t)
}

// with is the same login with another token. A server that gives no new
// refresh token means the old one to be kept (RFC 6749, section 6).
func (s *stored) with(t *oauth2.Token) *stored {
	out := *s
	out.Access, out.Expiry = t.AccessToken, t.Expiry
	if t.RefreshToken != "" {
		out.Refresh = t.RefreshToken
	}
	return &out
}

func (s *stored) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: s.ClientID, ClientSecret: s.Secret, Scopes: s.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: s.AuthURL, TokenURL: s.TokenURL, AuthStyle: s.Style},
	}
}

// fresh reports whether the token can be used.
func (s *stored) fresh() bool {
	return s.Access != "" && (s.Expiry.IsZero() || time.Until(s.Expiry) > early)
}

// DefaultDir is where tokens are kept: mcp-refit/tokens in the user's
// configuration directory.
func DefaultDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no place to keep a login: %w", err)
	}
	return filepath.Join(dir, "mcp-refit", "tokens"), nil
}

// canonical is a server's URL as its file is named after.
func canonical(u *url.URL) string {
	c := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	if c.Path == "" {
		c.Path = "/"
	}
	return c.String()
}

// file is where the login at the server is kept. The directory is made if it
// is not there.
func (l *Login) file() (string, error) {
	dir := l.Dir
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(canonical(l.URL)))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".json"), nil
}

// load reads what is kept, nil if there is nothing that can be used.
func (l *Login) load() (*stored, error) {
	file, err := l.file()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s stored
	if json.Unmarshal(data, &s) != nil || s.Server != canonical(l.URL) {
		return nil, nil // the next login writes it anew
	}
	if l.ClientID != "" && !isDocument(l.ClientID) && s.ClientID != l.ClientID {
		return nil, nil // another client's
	}
	return &s, nil
}

// save keeps a login, whole or not at all.
func (l *Login) save(s *stored) error {
	file, err := l.file()
	if err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// lockEvery is how often a lock that another process holds is tried again.
const lockEvery = 100 * time.Millisecond

// lockFile keeps other processes from logging in or refreshing at the same
// time. They read the token afterwards.
func (l *Login) lockFile(ctx context.Context) (release func(), err error) {
	file, err := l.file()
	if err != nil {
		return nil, err
	}
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}
