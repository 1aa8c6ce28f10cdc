//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
)

// Yardsticks: relays that do less than we do, and relays that decode and encode
// each message, as inspectors do.

// loadProxy is a bare httputil.ReverseProxy: loadProxy ADDRESS URL. With
// another argument it decodes and encodes each message.
func loadProxy() {
	to, err := url.Parse(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1}
	handler := http.Handler(proxy)
	if len(os.Args) > 3 {
		proxy.ModifyResponse = func(res *http.Response) error {
			body, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			body = reencode(body)
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			res.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		}
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			body = reencode(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			proxy.ServeHTTP(w, r)
		})
	}
	log.Fatal(http.ListenAndServe(os.Args[1], handler))
}

// loadRelay is a relay over stdio that decodes and encodes each message:
// loadRelay COMMAND.
func loadRelay() {
	cmd := exec.Command(os.Args[1])
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		relayLines(os.Stdin, in)
		in.Close()
	}()
	relayLines(out, os.Stdout)
	_ = cmd.Wait()
}

// relayLines passes each line on by itself, and what is no message as it is.
func relayLines(from io.Reader, to io.Writer) {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		if _, err := to.Write(append(bytes.TrimSpace(reencode(line)), '\n')); err != nil {
			return
		}
	}
}

// reencode decodes a message into maps, and encodes it. The ids stay what they
// were, and what comes first stays first, as the load needs it.
func reencode(raw []byte) []byte {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method,omitempty"`
		Params  any             `json:"params,omitempty"`
		Result  any             `json:"result,omitempty"`
		Error   any             `json:"error,omitempty"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}
