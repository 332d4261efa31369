package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ownOrigin keeps pages of other sites from using this server through a browser
// that may reach it. foreign tells whether names that aren't an address of this
// host are taken: without tokens a name that somebody makes point here
// (DNS rebinding) would be enough.
func ownOrigin(foreign func() bool, next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !foreign() && !numeric(r.Host) {
			problem(http.StatusMisdirectedRequest, "", "this server is asked for by address or as localhost, and not as %.100q, while it has no auth", r.Host).write(w)
			return
		}
		if err := cross.Check(r); err != nil {
			problem(http.StatusForbidden, "cross-origin", "a page of another site may not ask for this").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// numeric tells whether a Host is an address, or localhost.
func numeric(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}

// deliberate tells whether a GET may start something: no prefetch, and no page of
// another site.
func deliberate(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Moz"} {
		if strings.Contains(strings.ToLower(h.Get(name)), "prefetch") {
			return false
		}
	}
	switch h.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return false
}
