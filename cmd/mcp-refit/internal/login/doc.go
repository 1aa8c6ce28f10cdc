// Package login obtains and keeps the OAuth tokens for an MCP server at a URL,
// for a user who sits at this machine.
//
// The protocol is the Go SDK's (its packages auth and oauthex): discovery of
// the authorization server, PKCE, registration, scopes, step-up, and the checks
// of issuer and resource. What is added here is what the SDK leaves to a
// program:
//
//   - the user is sent to the login by his browser, or by a URL to open;
//   - the answer comes back to a port on 127.0.0.1 that is open for as long as
//     the login takes (RFC 8252, section 7.3);
//   - the tokens are kept in a file for each server, which the user alone can
//     read. There is no use of the system's keyring: it asks the user questions
//     of its own, is not there on servers and in containers, and programs of
//     the same user can read it all the same;
//   - a lock beside the file lets one login, and one refresh, serve all
//     processes that talk to the same server at that time.
//
// A token is sent to the server that it was obtained for, and to its
// authorization server. It is in no log and in no error.
package login
