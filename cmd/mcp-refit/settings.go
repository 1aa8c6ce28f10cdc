package main

import (
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/mcp-refit/mcp-refit/policy"
)

// loadSettings reads the policy file, if there is one, and puts the flags over it.
func loadSettings(file string, flags *pflag.FlagSet, command []string) (*policy.Policy, error) {
	config := policy.Default()
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usageError{err}
		}
		if config, err = policy.Parse(file, data); err != nil {
			return nil, usageError{err}
		}
	}
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		s, ok := f.Value.(*settingFlag)
		if !ok {
			return
		}
		for _, v := range s.values {
			errs = append(errs, config.SetFlag(f.Name, v))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{err}
	}
	if command != nil {
		config = config.For("", command)
	}
	compiled, err := config.Compile()
	if err != nil {
		return nil, usageError{err}
	}
	return compiled, nil
}
