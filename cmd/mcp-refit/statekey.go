package main

import (
	"os"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// newSealer makes the sealer of modern state from the key file, nil if there
// is none: then the proxy has a key of its own.
func newSealer(c *policy.Config) (*proxy.Sealer, error) {
	file := c.Run.StateKeyFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{err}
	}
	keys, err := proxy.ParseKeys(file, data)
	if err != nil {
		return nil, usageError{err}
	}
	return &proxy.Sealer{Keys: keys, Expiry: c.Answers.StateExpiry.Std()}, nil
}
