package driver

import (
	"context"
	"net/url"
	"sync"
)

// A Setup is what has to be there before a store can be used, such as tables and
// a user's rights. Its zero value is that of a store which needs nothing.
type Setup struct {
	Makes  string // what Make makes, in words; "": nothing has to be made
	Script string // the same to be run by hand, in the server's own language
	// Make makes it, all or nothing, and tells whether anything was missing. It may
	// be called again, and by several at once. nil: nothing has to be made.
	Make func(ctx context.Context) (made bool, err error)
	// Rights is what a user of the store needs and no more, in the server's own
	// language; user is put in as it is. nil: the store knows no users.
	Rights func(user string) string
}

// A Planner reads a store's URL, without any I/O on the store. Like an Opener it
// rejects every query parameter that it does not know.
type Planner func(u *url.URL) (Setup, error)

var planners struct {
	mu      sync.Mutex // guards schemes
	schemes map[string]Planner
}

// RegisterSetup tells what the stores of a scheme need; a store's package calls it
// from init. It panics if the scheme has a Planner.
func RegisterSetup(scheme string, plan Planner) {
	planners.mu.Lock()
	defer planners.mu.Unlock()
	if _, taken := planners.schemes[scheme]; taken {
		panic("driver: the setup of scheme " + scheme + " is registered twice")
	}
	if planners.schemes == nil {
		planners.schemes = make(map[string]Planner)
	}
	planners.schemes[scheme] = plan
}

// PlanSetup tells what the store that rawURL names needs. The errors are those of
// [Open]; nothing is connected to.
func PlanSetup(rawURL string) (Setup, error) {
	u, _, err := find(rawURL)
	if err != nil {
		return Setup{}, err
	}
	planners.mu.Lock()
	plan := planners.schemes[u.Scheme]
	planners.mu.Unlock()
	if plan == nil {
		return Setup{}, nil
	}
	return plan(u)
}
