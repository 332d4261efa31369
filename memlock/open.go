package memlock

import (
	"context"
	"net/url"
	"sync"

	"github.com/dibslock/dibs/driver"
)

func init() { driver.Register("mem", Open) }

// shared has the memories that were opened by name: they live as long as the
// process.
var shared struct {
	mu     sync.Mutex // guards stores
	stores map[string]*Store
}

// Open opens mem://, a memory of its own, or mem://name, the one that everybody
// in the process shares under that name. With ?journal=on it has a journal; a
// shared memory keeps one as soon as one of its clients wants it.
func Open(ctx context.Context, u *url.URL) (driver.Store, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	p := driver.NewParams(u)
	journal := p.Choice("journal", "off", "on") == "on"
	if err := p.Err(); err != nil {
		return nil, err
	}
	if u.Opaque != "" || u.User != nil || u.Path != "" || u.Fragment != "" {
		return nil, driver.Rejectedf("", "the store's URL: want mem:// or mem://name")
	}
	if u.Host == "" {
		return New(Options{Journal: journal}), nil
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	first := shared.stores[u.Host]
	if first == nil {
		first = New(Options{})
		if shared.stores == nil {
			shared.stores = make(map[string]*Store)
		}
		shared.stores[u.Host] = first
	}
	if journal {
		first.m.mu.Lock()
		first.m.journal = true
		first.m.mu.Unlock()
	}
	return first.Client(), nil
}
