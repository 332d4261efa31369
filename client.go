package dibs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// Options are what a client is made with. The zero value, and nil, mean the
// defaults.
type Options struct {
	Settings              // how claims behave, unless With says otherwise
	Hooks    Hooks        // told what happens
	Logger   *slog.Logger // for what no caller can see, such as a claim left to its TTL; nil: silent
}

// A Client locks names in one store. It is safe for concurrent use. Its siblings
// (see With) share the store's connections and the renewals.
type Client struct {
	core *core
	set  Settings
	err  error // the settings given to With are bad
}

// Open opens the store that rawURL names and returns a client that closes it in
// Close. The store's package must be imported, such as
// _ "github.com/dibslock/dibs/sqlitelock" for sqlite:///path. A bad URL or bad
// options are an ErrRejected, and a store that can't be reached is an ErrUnknown.
func Open(ctx context.Context, rawURL string, opts *Options) (*Client, error) {
	store, err := driver.Open(ctx, rawURL)
	if err != nil && !driver.Certain(err) {
		scheme, _, _ := strings.Cut(rawURL, ":")
		return nil, &Error{Op: "open", Driver: scheme, Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("dibs: %w", err)
	}
	c, err := New(store, opts)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, closing(store))
	}
	return c, nil
}

// closing closes a store that nobody will use, and says so if that failed.
func closing(store driver.Store) string {
	if err := store.Close(); err != nil {
		return fmt.Sprintf(" (and closing the store: %v)", err)
	}
	return ""
}

// New returns a client of store, which Close will close. Bad options are an
// ErrRejected; a nil store panics.
func New(store driver.Store, opts *Options) (*Client, error) {
	if store == nil {
		panic("dibs: nil store")
	}
	if opts == nil {
		opts = &Options{}
	}
	base := defaults
	base.Note = defaultNote()
	set, err := opts.over(base).resolved(store.Facts())
	if err != nil {
		return nil, fmt.Errorf("dibs: %w", err)
	}
	core, err := newCore(store, opts.Hooks, opts.Logger)
	if err != nil {
		return nil, &Error{Op: "open", Driver: store.Facts().Driver, Err: err}
	}
	return &Client{core: core, set: set}, nil
}

// With returns a sibling of c that differs in s and shares everything else;
// closing one closes both. Bad settings are the error of every acquire of the
// sibling, before any I/O; Err tells them at once.
func (c *Client) With(s Settings) *Client {
	set, err := s.over(unresolved(c.set)).resolved(c.core.facts)
	if c.err != nil {
		err = c.err
	}
	return &Client{core: c.core, set: set, err: err}
}

// unresolved turns resolved settings back into ones whose every field is set.
func unresolved(s Settings) Settings {
	for _, d := range s.durations() {
		if *d == 0 {
			*d = Off
		}
	}
	return s
}

// Err tells whether the settings that With was given are bad; nil for a client
// from Open or New.
func (c *Client) Err() error { return c.err }

// Settings returns the settings in force, every default filled in.
func (c *Client) Settings() Settings { return c.set }

// Facts tells what the store promises.
func (c *Client) Facts() driver.Facts { return c.core.facts }

// Close ends c and its siblings: waits end with ErrClosed, leases are lost
// (ClientClosed) and given back, and what was asked for without a clear answer
// is taken back, which may take up to a TTL (law 38). ctx bounds that; the error
// names what was then left to its TTL. The store is closed in any case. Closing
// twice is harmless: the second call waits for the first.
func (c *Client) Close(ctx context.Context) error { return c.core.close(ctx) }
