// Package proxy moves JSON-RPC messages between MCP clients and MCP servers,
// and refits them on the way.
//
// [Proxy] is the package. Its fields are its configuration, and its zero value
// passes every message. It carries messages in three ways:
//
//   - [Proxy.Run] between two streams of lines (stdio), such as our own stdin
//     and stdout and those of a [Child];
//   - [Proxy.ServeHTTP] between HTTP clients and a server at a URL: Streamable
//     HTTP in both eras, and HTTP+SSE of 2024-11-05. With a [ChildTransport] as
//     its Transport the server is a child on stdio instead;
//   - [Proxy.RunURL] between a client on stdio and a server at a URL.
//
// # One message
//
// Whatever carried it, a message goes through one function, handle (handle.go):
//
//	scan the envelope → track the call → nothing of ours in it? pass the same slice
//	→ find references → decide, by the policy → apply all edits in one copy
//
// What it returns says what goes on, in the message's direction, and what goes
// back to whoever sent it. The steps stand in one list per direction. Package
// rewrite finds and edits, package policy decides, package policy/icon fetches
// and decodes; none of them knows of sessions or transports.
//
// # What is remembered
//
// A session (session.go) is what we know of one client's talk with one server:
// the revision that the client offered, and the requests in flight both ways
// (calls.go), pending elicitations among them. Over stdio it lives as long as
// the streams, over HTTP it goes by Mcp-Session-Id or the announced endpoint.
// For the stateless revision 2026-07-28 nothing is kept: what an answer is to
// be checked against travels sealed in the requestState (seal.go).
//
// What the package sees is told through func fields (OnDecision, OnMessage,
// and others), which must not block.
package proxy
