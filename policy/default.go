package policy

import (
	"fmt"
	"reflect"
)

// Default is the built-in policy, as Config's tags say it.
func Default() *Config {
	c := new(Config)
	v := reflect.ValueOf(c).Elem()
	for _, f := range Fields() {
		if f.Default == "" {
			continue
		}
		if err := f.setText(v.FieldByIndex(f.index), f.Default); err != nil {
			panic(fmt.Sprintf("policy: the default of %s: %v", f.Path, err)) // a test sets them all
		}
	}
	return c
}

// clone is a deep copy.
func (c *Config) clone() *Config {
	out := *c
	out.provenance = c.provenance.clone()
	v := reflect.ValueOf(&out).Elem()
	for _, f := range Fields() {
		if !f.List {
			continue
		}
		list := v.FieldByIndex(f.index)
		if list.IsNil() {
			continue
		}
		list.Set(reflect.AppendSlice(reflect.MakeSlice(list.Type(), 0, list.Len()), list))
	}
	return &out
}
