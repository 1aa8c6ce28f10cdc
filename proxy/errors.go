package proxy

import (
	"strconv"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// The error codes that we use, of JSON-RPC 2.0 section 5.1 and of MCP.
const (
	codeParse          = -32700 // the text is not JSON
	codeInvalidRequest = -32600 // JSON, but not a message, or too large, or not allowed here
	codeInvalidParams  = -32602 // an answer or a state that fails its check
	codeInternal       = -32603 // the other side is gone
	codeMethodNotFound = -32601 // the server has no such method
	codeServer         = -32000 // what servers make of it
	codeHeaderMismatch = -32020 // a header disagrees with the body (2026-07-28)
)

// Texts of the errors that we send, each said to whoever waits.
const (
	textFull         = "too many bytes are in flight in this proxy (limits.max-inflight); try again later"
	textLeft         = "mcp-refit: the client closed its side of the connection before the answer came, so the request was given up; it may have had its effect"
	textParse        = "mcp-refit: this is not valid JSON, so it was not passed on"
	textNotMessage   = "mcp-refit: this is not a JSON-RPC 2.0 message, so it was not passed on"
	textEmptyBatch   = "mcp-refit: an empty batch is no message"
	textBatch        = "mcp-refit: another element of the same batch was refused, so nothing of it was passed on; send it by itself"
	textLongBatch    = "mcp-refit: a batch of more than 16384 messages is not passed on; send them in several"
	textCallsFull    = "mcp-refit: too many requests are in flight in this session (limits.calls), or this one is too large, so it could not be remembered and its answer not checked"
	textNoState      = "mcp-refit: this answer carries no state that we sealed, so it cannot be checked; call again without inputResponses"
	textTask         = "mcp-refit: the question that this answers is not one of the task's, so it cannot be checked; ask tasks/get again"
	textSessionsFull = "mcp-refit: too many sessions are open (limits.sessions); try again later"
	textNoForm       = "mcp-refit: what this answers is no form that we know, so it cannot be checked"
	textTaskID       = "mcp-refit: the id of this task belongs to another question's task, so its answer could not be told from that one's"
	textUnknown      = "mcp-refit: this answer belongs to a session that we do not know, so it cannot be checked"
)

// errorMessage makes a JSON-RPC error response. An empty id is written as null.
func errorMessage(id []byte, code int, text string) []byte {
	if len(id) == 0 {
		id = []byte("null")
	}
	b := make([]byte, 0, len(id)+len(text)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = append(b, rewrite.Quote(text)...)
	return append(b, "}}"...)
}

// resultMessage makes a JSON-RPC response with a result.
func resultMessage(id, result []byte) []byte {
	b := make([]byte, 0, len(id)+len(result)+48)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}
