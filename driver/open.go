package driver

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// An Opener opens the store that u names. It must reject, by ErrRejected and
// before it changes anything, every query parameter that it does not know: see
// [Params].
type Opener func(ctx context.Context, u *url.URL) (Store, error)

var registry struct {
	mu      sync.Mutex // guards schemes
	schemes map[string]Opener
}

// Register makes a scheme known to Open; a store's package calls it from init.
// It panics if the scheme is taken.
func Register(scheme string, open Opener) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if _, taken := registry.schemes[scheme]; taken {
		panic("driver: scheme " + scheme + " is registered twice")
	}
	if registry.schemes == nil {
		registry.schemes = make(map[string]Opener)
	}
	registry.schemes[scheme] = open
}

// Schemes lists the schemes that are registered, sorted.
func Schemes() []string {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	var names []string
	for s := range registry.schemes {
		names = append(names, s)
	}
	slices.Sort(names)
	return names
}

// home tells which package registers a scheme.
var home = map[string]string{
	"mem":             "github.com/dibslock/dibs/memlock",
	"sqlite":          "github.com/dibslock/dibs/sqlitelock",
	"redis":           "github.com/dibslock/dibs/redislock",
	"rediss":          "github.com/dibslock/dibs/redislock",
	"redis+unix":      "github.com/dibslock/dibs/redislock",
	"redlock":         "github.com/dibslock/dibs/redislock",
	"redlocks":        "github.com/dibslock/dibs/redislock",
	"redis-sentinel":  "github.com/dibslock/dibs/redislock",
	"rediss-sentinel": "github.com/dibslock/dibs/redislock",
	"redis-cluster":   "github.com/dibslock/dibs/redislock",
	"rediss-cluster":  "github.com/dibslock/dibs/redislock",
	"postgres":        "github.com/dibslock/dibs/pglock",
	"postgresql":      "github.com/dibslock/dibs/pglock",
	"pgadvisory":      "github.com/dibslock/dibs/pglock",
}

// Open opens the store that rawURL names. An unknown scheme is an ErrRejected
// that says which import is missing. Passwords never reach an error.
func Open(ctx context.Context, rawURL string) (Store, error) {
	u, open, err := find(rawURL)
	if err != nil {
		return nil, err
	}
	return open(ctx, u)
}

// find parses rawURL and returns what opens it.
func find(rawURL string) (*url.URL, Opener, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, nil, err
	}
	if u.Scheme == "" {
		return nil, nil, Rejectedf("", "the store's URL has no scheme, such as sqlite:///var/lib/dibs/locks.db")
	}
	registry.mu.Lock()
	open := registry.schemes[u.Scheme]
	registry.mu.Unlock()
	if open != nil {
		return u, open, nil
	}
	known := strings.Join(Schemes(), ", ")
	if known == "" {
		known = "none"
	}
	if pkg := home[u.Scheme]; pkg != "" {
		return nil, nil, Rejectedf("", "the scheme %s:// needs import _ %q (this program knows: %s)", u.Scheme, pkg, known)
	}
	return nil, nil, Rejectedf("", "unknown scheme %s:// in the store's URL (this program knows: %s)", u.Scheme, known)
}

// Params reads a URL's query parameters, each once, and knows which were not
// asked for.
type Params struct {
	values url.Values
	errs   []string
	secret bool // one of them must not be shown
}

// NewParams returns the parameters of u.
func NewParams(u *url.URL) *Params {
	values, err := url.ParseQuery(u.RawQuery)
	p := &Params{values: values, secret: hides(u.RawQuery)}
	if err != nil { // it quotes what it is about
		p.errs = append(p.errs, "a parameter can't be parsed: "+encode)
	}
	return p
}

// String takes the parameter named key, or fallback if there is none.
func (p *Params) String(key, fallback string) string {
	v, ok := p.values[key]
	if !ok {
		return fallback
	}
	delete(p.values, key)
	if len(v) != 1 {
		p.errs = append(p.errs, fmt.Sprintf("the parameter %q is given %d times", key, len(v)))
	}
	return v[0]
}

// Choice takes the parameter named key, which must be one of choices; the first
// one is the fallback.
func (p *Params) Choice(key string, choices ...string) string {
	v := p.String(key, choices[0])
	if !slices.Contains(choices, v) {
		p.errs = append(p.errs, fmt.Sprintf("the parameter %s=%q: want one of %s", key, v, strings.Join(choices, ", ")))
		return choices[0]
	}
	return v
}

// Err returns an ErrRejected if a parameter was malformed or never asked for.
func (p *Params) Err() error {
	errs := p.errs
	var unknown []string
	for k := range p.values {
		unknown = append(unknown, k)
	}
	slices.Sort(unknown)
	if unknown != nil && p.secret {
		errs = append(errs, "unknown parameters, which may be of a password and are not shown (within it, write %26 for &)")
		unknown = nil
	}
	for _, k := range unknown {
		errs = append(errs, fmt.Sprintf("unknown parameter %q", k))
	}
	if errs == nil {
		return nil
	}
	return Rejectedf("", "the store's URL: %s", strings.Join(errs, "; "))
}
