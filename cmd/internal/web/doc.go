// Package web is a runner over HTTP: what it answers, and to whom.
//
// A request passes, in this order: limits on what a client may send (limits.go),
// the checks that keep other people's pages out (origin.go), the token (auth.go),
// the entity tag of what is read (etag.go), and then its route. Every answer that
// is no success is an application/problem+json (problem.go), also those that the
// library and the mux would give.
package web
