package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-refit/mcp-refit/policy"
)

// settings are the policy file and which of its sections is meant; the other
// flags are in the flag set.
type settings struct {
	file   string
	server string
}

// flags adds --config, --server and a flag for each setting that the policy
// has one for.
func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.file, "config", "", "The policy `file`; flags override it.")
	f.StringVar(&s.server, "server", "", "The server's `name`, for the policy's sections; without it the one that it gives itself at initialize.")
	policyFlags(f)
}

// load reads the policy file, if there is one, puts the flags over it, and
// compiles it for one server: named so, if the flag --server does not say
// another name, and started by this command, or at this URL.
func (s *settings) load(flags *pflag.FlagSet, name string, command []string) (*policy.Policy, error) {
	config, err := s.general(flags)
	if err != nil {
		return nil, err
	}
	return s.compile(config, name, command)
}

// compile is load for what general has read.
func (s *settings) compile(config *policy.Config, name string, command []string) (*policy.Policy, error) {
	if s.server != "" {
		name = s.server
	}
	if name != "" || len(command) > 0 {
		config = config.For(name, command)
	}
	p, err := config.Compile()
	if err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// general is the file with the flags over it, all sections included.
func (s *settings) general(flags *pflag.FlagSet) (*policy.Config, error) {
	config := policy.Default()
	if s.file != "" {
		data, err := readPolicyFile(s.file)
		if err != nil {
			return nil, usageError{err}
		}
		if config, err = policy.Parse(s.file, data); err != nil {
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
	return config, nil
}

// readPolicyFile reads no more of a file than a policy may have, and one byte.
func readPolicyFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// marshalLine is v as one line of JSON.
func marshalLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}
