package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// A keyStatus is who holds a key and who waits for it. It is the JSON of ls and
// of show.
type keyStatus struct {
	Key     string        `json:"key"`
	State   string        `json:"state"` // of the oldest claim; "free" if there is none, "waiting" if there are places alone
	Holders []claimStatus `json:"holders"`
	Waiters []claimStatus `json:"waiters"` // in the order of the line
}

// A claimStatus is one claim, or one place in line. Tokens are strings: they can
// be larger than what JSON readers keep exact.
type claimStatus struct {
	State string `json:"state"`
	Mode  string `json:"mode"`
	Units int    `json:"units"`
	Of    int    `json:"capacity,omitempty"` // counted claims
	Fence string `json:"fence,omitempty"`
	Token string `json:"token,omitempty"`
	Age   int64  `json:"age_ms"`        // by the store's clock
	Left  int64  `json:"expires_in_ms"` // if it isn't heard of
	TTL   int64  `json:"ttl_ms"`
	Place string `json:"place,omitempty"` // of a waiter; never used again on its key
	Note  string `json:"note"`
	// Of a program that is not dibs; an age_ms or expires_in_ms of 0 is then unknown.
	Foreign bool `json:"foreign,omitempty"`

	holder dibs.Holder
}

func newClaimStatus(h dibs.Holder) claimStatus {
	c := claimStatus{
		State: h.State.String(), Mode: h.Mode().String(), Units: h.Units,
		Age: h.Age.Milliseconds(), Left: h.Left.Milliseconds(), TTL: h.TTL.Milliseconds(),
		Note: h.Note, Foreign: h.Foreign, holder: h,
	}
	if h.Mode() == driver.Counted {
		c.Of = h.Capacity
	}
	if h.Fence != 0 {
		c.Fence = strconv.FormatUint(h.Fence, 10)
	}
	if h.Token != 0 {
		c.Token = strconv.FormatUint(h.Token, 10)
	}
	if h.Place != 0 {
		c.Place = strconv.FormatUint(h.Place, 10)
	}
	return c
}

// statuses reads the keys that match wants, in order.
func statuses(ctx context.Context, p place, prefix string, wants func(key string) bool) ([]keyStatus, error) {
	store, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	client, err := p.client(store, nil)
	if err != nil {
		return nil, err
	}
	defer closeClient(client, logger(io.Discard, false))
	return listed(ctx, p, client, prefix, wants)
}

// listed reads the keys that match wants from an open store. With an error it returns
// those that could be read.
func listed(ctx context.Context, p place, client *dibs.Client, prefix string, wants func(key string) bool) ([]keyStatus, error) {
	var all []keyStatus
	for h, err := range client.Holders(ctx, prefix) {
		if err != nil {
			return all, p.cannot(canList, "", err)
		}
		if !wants(h.Name) {
			continue
		}
		if len(all) == 0 || all[len(all)-1].Key != h.Name {
			all = append(all, freeKey(h.Name))
		}
		all[len(all)-1].add(h)
	}
	return all, nil
}

// oneStatus reads the status of one key.
func oneStatus(ctx context.Context, p place, client *dibs.Client, key string) (keyStatus, error) {
	all, err := listed(ctx, p, client, key, func(k string) bool { return k == key })
	if len(all) == 0 {
		return freeKey(key), err
	}
	return all[0], nil // an error is about another key that begins like this one
}

// position is where a place stands in the line; 0: it doesn't.
func (k keyStatus) position(place uint64) int {
	for i, c := range k.Waiters {
		if c.holder.Place == place {
			return i + 1
		}
	}
	return 0
}

func freeKey(key string) keyStatus {
	return keyStatus{Key: key, State: "free", Holders: []claimStatus{}, Waiters: []claimStatus{}}
}

func (k *keyStatus) add(h dibs.Holder) {
	if h.State == driver.Waiting {
		k.Waiters = append(k.Waiters, newClaimStatus(h))
	} else {
		k.Holders = append(k.Holders, newClaimStatus(h))
	}
	k.State = cmp.Or(append(k.Holders, k.Waiters...)[0].State, k.State)
}

// printJSON writes one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// listTime bounds what ls and show wait for.
const listTime = 30 * time.Second
