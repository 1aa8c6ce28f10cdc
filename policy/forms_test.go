package policy

import (
	"reflect"
	"testing"
)

func TestFormsDecideURL(t *testing.T) {
	hosts := []string{"login.example.com", "*.example.org"}
	for _, tt := range []struct {
		name        string
		config      FormsConfig
		url         string
		allow, flag bool
		reason      reason
	}{
		{"no policy", FormsConfig{URLPunycode: FormPass}, "javascript:x", true, false, reasonFormAllowed},
		{"listed", FormsConfig{URLHosts: hosts}, "https://login.example.com/?state=1", true, false, reasonFormAllowed},
		{"wildcard", FormsConfig{URLHosts: hosts}, "https://a.example.org/", true, false, reasonFormAllowed},
		{"not listed", FormsConfig{URLHosts: hosts}, "https://login.example.net/", false, false, reasonFormHost},
		{"the server's own, not listed", FormsConfig{URLHosts: hosts}, "https://mcp.example.net/", false, false, reasonFormHost},
		{"the server's own, listed", FormsConfig{URLHosts: []string{"self"}}, "https://mcp.example.net/", true, false, reasonFormAllowed},
		{"another's, where the server's own is listed", FormsConfig{URLHosts: []string{"self"}}, "https://www.example.net/", false, false, reasonFormHost},
		{"http", FormsConfig{URLHosts: hosts}, "http://login.example.com/", false, false, reasonScheme},
		{"userinfo", FormsConfig{URLHosts: hosts, URLPunycode: FormFlag}, "https://login.example.com@evil.com/", false, false, reasonUserinfo},
		{"script", FormsConfig{URLHosts: hosts}, "javascript:x", false, false, reasonScript},
		{"punycode flagged", FormsConfig{URLPunycode: FormFlag}, "https://xn--80ak6aa92e.com/", true, true, reasonFormPunycode},
		{"punycode declined", FormsConfig{URLPunycode: FormDecline}, "https://xn--80ak6aa92e.com/", false, false, reasonFormPunycode},
		{"punycode listed and flagged", FormsConfig{URLHosts: []string{"xn--80ak6aa92e.com"}, URLPunycode: FormFlag}, "https://xn--80ak6aa92e.com/", true, true, reasonFormPunycode},
		{"not ASCII, flagged", FormsConfig{URLPunycode: FormFlag}, "https://аррӏе.com/", true, true, reasonHostUnicode},
		{"not ASCII, declined", FormsConfig{URLPunycode: FormDecline}, "https://аррӏе.com/", false, false, reasonHostUnicode},
		{"plain, watched", FormsConfig{URLPunycode: FormFlag}, "https://www.example.com/", true, false, reasonFormAllowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewForms(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			d := f.DecideURL(IconArgs{URL: tt.url, Origin: "https://mcp.example.net"})
			if d.Allow != tt.allow || d.Flag != tt.flag || d.Reason != tt.reason.String() {
				t.Errorf("got %+v; want %v, %v, %q", d, tt.allow, tt.flag, tt.reason)
			}
		})
	}
	if _, err := NewForms(FormsConfig{URLHosts: []string{"*"}}); err == nil {
		t.Error("* is taken for a host")
	}
}

func TestFormsDecideForm(t *testing.T) {
	for _, tt := range []struct {
		name, properties string
		fields           []string
	}{
		{"plain", `"name":{"type":"string"},"age":{"type":"integer"}`, nil},
		{"by name", `"user":{"type":"string"},"db_password":{"type":"string"},"apiKey":{"type":"string"}`, []string{"db_password", "apiKey"}},
		{"by name, without a type", `"access_token":{}`, []string{"access_token"}},
		{"by title", `"x":{"type":"string","title":"Your API key"}`, []string{"x"}},
		{"by format", `"x":{"type":"string","format":"password"}`, []string{"x"}},
		{"by writeOnly", `"x":{"type":"string","writeOnly":true}`, []string{"x"}},
		{"nullable", `"password":{"type":["string","null"]}`, []string{"password"}},
		{"nullable by anyOf", `"password":{"anyOf":[{"type":"string"},{"type":"null"}]}`, []string{"password"}},
		{"an amount", `"max_tokens":{"type":"integer","title":"Max tokens"}`, nil},
		{"a number that is a secret", `"pin":{"type":"integer"}`, []string{"pin"}},
		{"a switch", `"use_token":{"type":"boolean"}`, nil},
		{"a choice", `"token_type":{"type":"string","enum":["a","b"]}`, nil},
		{"in an object", `"login":{"type":"object","properties":{"password":{"type":"string"}}}`, []string{"login.password"}},
		{"escaped name", `"pass\u0077ord":{"type":"string"}`, []string{"password"}},
		{"not a schema", `"password":true`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schema := []byte(`{"type":"object","properties":{` + tt.properties + `}}`)
			for _, mode := range []string{FormPass, FormFlag, FormDecline} {
				f, err := NewForms(FormsConfig{Secrets: mode})
				if err != nil {
					t.Fatal(err)
				}
				want := FormDecision{Allow: true, Reason: reasonFormPlain.String()}
				if tt.fields != nil && mode != FormPass {
					want = FormDecision{Allow: mode == FormFlag, Flag: mode == FormFlag, Reason: reasonFormSecret.String(), Fields: tt.fields}
				}
				if d := f.DecideForm(schema); !reflect.DeepEqual(d, want) {
					t.Errorf("%s: got %+v, want %+v", mode, d, want)
				}
			}
		})
	}
	for _, schema := range []string{`{"properties":`, `[]`, `"x"`} {
		for mode, allow := range map[string]bool{FormPass: true, FormFlag: true, FormDecline: false} {
			f, err := NewForms(FormsConfig{Secrets: mode})
			if err != nil {
				t.Fatal(err)
			}
			if d := f.DecideForm([]byte(schema)); d.Allow != allow || mode != FormPass && d.Reason != reasonFormUnread.String() {
				t.Errorf("%s, %s: %+v", schema, mode, d)
			}
		}
	}
	f, err := NewForms(FormsConfig{Secrets: FormDecline})
	if err != nil {
		t.Fatal(err)
	}
	if d := f.DecideForm(nil); !d.Allow {
		t.Errorf("a form without a schema: %+v", d)
	}
}
