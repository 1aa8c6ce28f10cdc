package proxy

import "github.com/mcp-refit/mcp-refit/policy"

// sizeText writes a number of bytes as the policy file does.
func sizeText(bytes int64) string { return policy.Size(bytes).String() }
