package policy

import (
	"fmt"
	"reflect"
)

func serverPath(i int) string { return fmt.Sprintf("servers[%d]", i) }

// Validate checks the policy as a whole: each value by itself, and those that
// must fit each other. The error is of type Errors.
func (c *Config) Validate() error {
	if errs := c.validate(); len(errs) > 0 {
		return errs
	}
	return nil
}

func (c *Config) validate() Errors {
	var errs Errors
	fail := func(source Source, path, format string, args ...any) {
		errs = append(errs, &Error{Source: source, Path: path, Msg: fmt.Sprintf(format, args...)})
	}
	v := reflect.ValueOf(c).Elem()
	for _, f := range Fields() {
		if f.Path == "icons.rules" || f.Path == "servers" {
			continue
		}
		field := v.FieldByIndex(f.index)
		if err := f.check(field); err != nil {
			fail(c.Source(f.Path), f.Path, "%v", err)
		}
	}
	for i, rule := range c.Icons.Rules {
		path := fmt.Sprintf("icons.rules[%d]", i)
		if err := CheckHost(rule.Host); err != nil {
			fail(rule.source, path, "%v", err)
		}
		if rule.Action > Keep {
			fail(rule.source, path, "%v is none of strip, inline, keep", rule.Action)
		}
	}
	for _, rule := range []struct {
		path, other string // of the two keys that do not fit each other
		bad         bool
		msg         string
	}{
		{"http.tls-cert", "http.tls-key", (c.HTTP.TLSCert == "") != (c.HTTP.TLSKey == ""), "a certificate and its key are set together"},
		{"icons.cache.min-ttl", "icons.cache.max-ttl", c.Icons.Cache.MinTTL > c.Icons.Cache.MaxTTL, "the least time is longer than the longest"},
		{"icons.budget.per-icon", "icons.budget.per-message", exceeds(c.Icons.Budget.PerIcon, c.Icons.Budget.PerMessage), "one icon may take more than a whole message"},
		{"limits.max-message", "limits.max-inflight", exceeds(c.Limits.MaxMessage, c.Limits.MaxInflight), "one message may be larger than all messages together"},
		{"run.pprof", "run.admin", c.Run.Pprof && c.Run.Admin == "", "pprof is served at the admin address, and there is none"},
	} {
		if !rule.bad {
			continue
		}
		source := c.Source(rule.path)
		if source == (Source{}) {
			source = c.Source(rule.other)
		}
		fail(source, rule.path, "%s (see %s)", rule.msg, rule.other)
	}
	return errs
}

// exceeds says whether a bound lies above another; one that is off lies above
// all.
func exceeds(a, b Size) bool { return b >= 0 && (a < 0 || a > b) }

// check holds a value that may have been set in Go to what its tags say.
func (f *Field) check(v reflect.Value) error {
	if f.List {
		for i := range v.Len() {
			if err := f.checkString(v.Index(i).String()); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() == reflect.Bool {
		return nil
	}
	return f.setText(reflect.New(v.Type()).Elem(), f.text(v))
}
