package icon

import (
	"errors"
	"fmt"
)

// A Reason names why an icon came to nothing. The values are stable, short and
// made for audit records and metric labels; a server is never told them.
type Reason string

// The reasons. The zero Reason stands for success.
const (
	ReasonNoWorker   Reason = "no-worker"        // Fetcher.Worker is empty
	ReasonClosed     Reason = "closed"           // the Fetcher was closed
	ReasonPurged     Reason = "purged"           // the policy changed while the icon was on its way
	ReasonBusy       Reason = "busy"             // too many icons on their way, or no turn in time
	ReasonURL        Reason = "url"              // not a URL that the fetcher takes
	ReasonDataURI    Reason = "data-uri"         // not a base64 data: URI of an allowed type, or too long
	ReasonResolve    Reason = "resolve"          // the name look-up failed or took too long
	ReasonAddress    Reason = "address"          // every address is one that must not be dialled
	ReasonConnect    Reason = "connect"          // no connection in time
	ReasonTLS        Reason = "tls"              // no valid TLS session in time
	ReasonHTTP       Reason = "http"             // no valid HTTP response header in time
	ReasonStatus     Reason = "status"           // a status other than 200 and the redirects
	ReasonRedirect   Reason = "redirect"         // a redirect to another origin, or too many
	ReasonEncoding   Reason = "content-encoding" // a compressed body, left unread
	ReasonType       Reason = "content-type"     // a media type that is no allowed image's
	ReasonBody       Reason = "body"             // the body ended early or took too long
	ReasonTooLarge   Reason = "too-large"        // more bytes than MaxBytes
	ReasonFormat     Reason = "format"           // the bytes start no allowed image format
	ReasonMismatch   Reason = "mismatch"         // the bytes are not what was declared
	ReasonDimensions Reason = "dimensions"       // no pixels, or more than MaxPixels
	ReasonDecode     Reason = "decode"           // the image does not decode
	ReasonPanic      Reason = "panic"            // the decoder panicked and was contained
	ReasonSVG        Reason = "svg"              // the SVG is not one that can be rebuilt
	ReasonBudget     Reason = "budget"           // no edge makes it small enough
	ReasonWorker     Reason = "worker"           // the worker died or overran a limit and was killed
)

// An Error is how every icon that came to nothing is told. It is for the
// operator alone: nothing of it may reach the server or the client.
type Error struct {
	Reason Reason
	Err    error // the cause, if there is more to say than Reason
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "icon: " + string(e.Reason)
	}
	return fmt.Sprintf("icon: %s: %v", e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason that err carries, or "" if it carries none: nil,
// [ErrPending] and context errors do not.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func fail(r Reason, err error) error { return &Error{Reason: r, Err: err} }

func failf(r Reason, format string, args ...any) error {
	return &Error{Reason: r, Err: fmt.Errorf(format, args...)}
}
