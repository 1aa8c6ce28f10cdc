// Package clientconfig edits the configuration files of MCP clients, so that
// the servers in them run through mcp-refit, and back.
//
// A file is never written anew from a tree. It is read for the places of its
// values, and the few bytes that change are spliced: comments, order, line
// ends and formatting stay as they are, and Unwrap after Wrap gives the bytes
// that were there before. Wrap itself makes sure of that, and refuses the file
// otherwise.
//
// A server that the client starts,
//
//	"command": "npx", "args": ["-y", "some-server"]
//
// is wrapped by its own command line:
//
//	"command": "/usr/local/bin/mcp-refit", "args": ["--", "npx", "-y", "some-server"]
//
// A server at a URL becomes one that the client starts, in the form that
// bridges stdio to the URL. What it was is kept, base64 of its own text,
// in an argument that the command ignores:
//
//	"command": "/usr/local/bin/mcp-refit",
//	"args": ["-H", "X-Key: 1", "--wrapped-entry=eyJ1c…", "https://example.com/mcp"]
//
// What can't be said in that form (OAuth settings, for instance) is refused,
// entry by entry, with the reason.
package clientconfig
