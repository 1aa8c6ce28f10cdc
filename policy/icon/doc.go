// Package icon makes small, harmless PNGs of icons that a server names.
//
// A [Fetcher] is given URLs that the policy has decided to inline. It fetches
// each within bounds, from public addresses only, and has a worker process
// decode it and encode it anew, so that what goes out is a picture that we
// made and nothing that came in. data: URIs take the same way without the
// fetch.
//
//	f := &icon.Fetcher{Worker: []string{"/proc/self/exe", "icon-worker"}}
//	defer f.Close()
//	m, err := f.Fetch(ctx, "https://cdn.example.com/logo.svg", "image/svg+xml")
//
// # Fetching
//
// The address is judged when it is dialled, on every connection, whatever the
// look-up said: of IPv4 and IPv6 alike only what the IANA registries do not set
// apart may be dialled, and IPv4 addresses inside IPv6 ones are judged as well
// (address.go). A name is looked up with the root dot. Redirects are followed
// within the origin. A request carries no cookie, credential, Referer or
// conditional header, and no proxy of the environment is asked;
// SSL_CERT_FILE and SSL_CERT_DIR hold as for any Go program ([Fetcher.RootCAs]). Each phase has a bound of its own, and a compressed body is left unread.
//
// # Waiting
//
// One fetch serves all who ask for the same icon. The context of [Fetcher.Fetch]
// bounds the wait and not the fetch: when it ends first, the error is a
// [*Pending], whose Done channel is closed when the icon has come into the
// cache or failed. [Fetcher.Begin] starts many before any is waited for.
// Outcomes are kept for a bounded time within a bounded number of bytes,
// failures too; [Fetcher.Purge] makes all of them void when the policy changes.
//
// # Decoding
//
// The worker is any command that calls [RunWorker]. It is the only place where
// foreign bytes are decoded: it has limits on memory, CPU and wall clock, no
// environment, and on Linux no descriptors besides its pipes; it is killed and
// replaced when it overruns any of them. What it answers is checked to be a
// PNG of the size it says. Dimensions are judged before pixels, formats by
// their first bytes and a full decode, and a raster format may stand under
// another's label as an icon's mimeType (upload sites label by rote), but not
// in a Content-Type or a data: URI, and markup never as pixels.
//
// SVG is rebuilt from an allowlist and drawn by package internal/svg on top of
// srwiley/rasterx. Measured on 584 icons of lucide, heroicons and simple-icons
// at 64 pixels, by the mean difference from resvg's picture: 0.4 %, and no
// more than 1.5 % for any icon. srwiley/oksvg, which draws with rasterx too,
// differs by 12 %: among other things it knows no even-odd rule.
// tdewolff/canvas differs by 0.8 %, panics on one of the icons, brings some
// twenty modules, and one of them takes 2.5 ms at every start of the program.
// And only a drawing of our own draws the rebuilt document itself, which no
// second parser reads in another way, and can keep a budget of work.
//
// # Failing
//
// Every failure is an [*Error] with a [Reason] from one table, for audit and
// metrics. Neither the server nor the client is to be told, and no text of a
// response gets into an error.
package icon
