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
// The worker is any command that calls [RunWorker]. It is the only place where
// foreign bytes are decoded: it has limits on memory, CPU and wall clock, no
// environment and no descriptors besides its pipes, and is killed and replaced
// when it overruns any of them.
package icon
