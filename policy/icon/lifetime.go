package icon

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// lifetime reads how long a response may be kept (RFC 9111 section 5.2.2),
// clamped at both ends: no host can have its icon kept for ever, and none can
// have it fetched at every message.
func (f *Fetcher) lifetime(header http.Header) time.Duration {
	shortest := duration(f.MinTTL, defaultMinTTL)
	longest := max(shortest, duration(f.MaxTTL, defaultMaxTTL))
	if f.MaxTTL < 0 {
		longest = math.MaxInt64
	}
	ttl := defaultTTL
	for directive := range strings.SplitSeq(strings.Join(header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache", "private":
			return shortest
		case "max-age":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
			if err != nil {
				return shortest
			}
			ttl = time.Duration(seconds) * time.Second
		}
	}
	return min(max(ttl, shortest), longest)
}

// failureLifetime is how long a failure is kept: with jitter, so that the
// failures of one moment are not tried again in one moment.
func (f *Fetcher) failureLifetime() time.Duration {
	ttl := duration(f.FailureTTL, defaultFailureTTL)
	if ttl == 0 {
		return 0
	}
	return ttl + rand.N(ttl/2+1)
}
