package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// tagged gives what is read an entity tag, and answers 304 to who has it already.
func tagged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/api/v1/") || strings.HasSuffix(r.URL.Path, "/log") {
			next.ServeHTTP(w, r)
			return
		}
		b := &buffered{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(b, r)
		if b.status == http.StatusOK {
			tag := w.Header().Get("ETag")
			if tag == "" {
				sum := sha256.Sum256(b.body.Bytes())
				tag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
				w.Header().Set("ETag", tag)
			}
			w.Header().Set("Cache-Control", "private, no-cache")
			if matches(r.Header.Get("If-None-Match"), tag) {
				w.Header().Del("Content-Type")
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		w.WriteHeader(b.status)
		_, _ = w.Write(b.body.Bytes()) // the client has gone
	})
}

// matches tells whether a list of tags has one. Weak tags are compared weakly.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// A buffered keeps an answer until its tag is known.
type buffered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

// Unwrap is for http.ResponseController.
func (b *buffered) Unwrap() http.ResponseWriter { return b.ResponseWriter }
