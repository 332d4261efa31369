package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A change is one difference between two looks at the keys. It is the JSON of
// watch.
type change struct {
	At      *time.Time   `json:"at"` // when it was seen, by this host's clock
	Key     string       `json:"key,omitempty"`
	Change  string       `json:"change"`
	Initial bool         `json:"initial,omitempty"` // it was so before the watch began
	Claim   *claimStatus `json:"claim,omitempty"`   // as last seen
	Error   string       `json:"error,omitempty"`   // store_down
}

// The changes that are no state of a claim.
const (
	freed     = "freed"      // the claim is gone
	left      = "left"       // the place is gone: granted, or given up
	storeDown = "store_down" // no clear answer; what was last seen may be old
	storeUp   = "store_up"
)

// differences are the changes from old to now, both ordered by key: first what is
// gone, then what is new, then the line.
func differences(at time.Time, old, now []keyStatus) []change {
	var all []change
	note := func(key, what string, c claimStatus) {
		all = append(all, change{At: utc(at), Key: key, Change: what, Claim: &c})
	}
	for len(old)+len(now) > 0 {
		var was, is keyStatus
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Key < now[0].Key:
			was, is, old = old[0], freeKey(old[0].Key), old[1:]
		case len(old) == 0 || now[0].Key < old[0].Key:
			was, is, now = freeKey(now[0].Key), now[0], now[1:]
		default:
			was, is, old, now = old[0], now[0], old[1:], now[1:]
		}
		for _, c := range was.Holders {
			if find(is.Holders, c) == nil {
				note(is.Key, freed, c)
			}
		}
		for _, c := range was.Waiters {
			if find(is.Waiters, c) == nil {
				note(is.Key, left, c)
			}
		}
		for _, c := range is.Holders {
			if before := find(was.Holders, c); before == nil || before.State != c.State {
				note(is.Key, c.State, c)
			}
		}
		for _, c := range is.Waiters {
			if find(was.Waiters, c) == nil {
				note(is.Key, c.State, c)
			}
		}
	}
	return all
}

// find returns the claim or place in all that c is.
func find(all []claimStatus, c claimStatus) *claimStatus {
	for i, o := range all {
		if o.Token == c.Token && o.Place == c.Place {
			return &all[i]
		}
	}
	return nil
}

// line is the change for people.
func (c change) line() string {
	what := c.Change
	switch what {
	case driver.Waiting.String():
		what = "waited for"
	case left:
		what = "no longer waited for"
	case driver.Kept.String(), driver.Draining.String():
		what += ", held"
	}
	s := fmt.Sprintf("%s %s %s by %s", c.At.Local().Format("15:04:05"), cell(c.Key), what, cmp.Or(printable(c.Claim.Note), "another"))
	if c.Claim.Fence != "" {
		s += " (fence " + c.Claim.Fence + ")"
	}
	return s
}
