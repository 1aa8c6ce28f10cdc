// Package rewrite reads JSON-RPC messages of the Model Context Protocol as
// bytes and edits them in place. It is pure: no I/O, no policy, no state.
//
// [Scan] checks a message and returns its [Envelope]: the kind, the raw id, the
// method and where its parts stand. What a message holds is then walked with
// [Members] and [Elements], never by a path made from a peer's keys. Changes
// are collected in [Edits] by offset and made in one copy, so whatever was not
// edited leaves as the same bytes, and a message without edits as the same
// slice.
//
// Three steps, each of its own: find the references (icons, forms, answers),
// let somebody decide, apply. The deciding is not done here.
//
// A requestedSchema found that way is brought into the shape that the client
// knows by [RefitForm], a list of rules on a switch each ([Rules]), and the
// answer to it back to the server's own types by [Form.Restore]. Both follow
// from the schema alone, so nothing needs to be kept in between.
//
// Where a member that we judge stands twice in an object, or once in another
// case, readers disagree on which one counts: encoding/json and JavaScript
// take the last, gjson the first, and decoders that ignore case take either
// spelling. Here the last of the exact spelling counts, and once a message is
// edited only that one is left in it.
package rewrite
