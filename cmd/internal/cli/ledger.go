package cli

import (
	"strconv"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// A hold is one time that a key was held, from grant to end. It is the JSON of
// history. What the journal does not tell is null.
type hold struct {
	Key      string      `json:"key"`
	Token    string      `json:"token"`
	Fence    string      `json:"fence,omitempty"`
	Mode     string      `json:"mode"`
	Units    int         `json:"units"`
	Of       int         `json:"capacity,omitempty"` // counted claims
	Start    *time.Time  `json:"start"`
	End      *time.Time  `json:"end"`
	Held     *int64      `json:"held_ms"` // until now, if it is held still
	Outcome  string      `json:"outcome"`
	Waited   bool        `json:"handed_over"` // granted to a place in line, by another's end
	TookOver bool        `json:"took_over"`   // the holder before ended by expiry, death or --now
	Revoked  *revocation `json:"revoked,omitempty"`
	Note     string      `json:"note"`
}

// A revocation is an operator's.
type revocation struct {
	At     *time.Time `json:"at"`
	Now    bool       `json:"now"`
	By     string     `json:"by,omitempty"` // user@host (pid N), if force-unlock wrote it
	Reason string     `json:"reason,omitempty"`
}

// The outcomes of a hold.
const (
	heldStill    = "held"
	wasReleased  = "released"
	wasExpired   = "expired" // its TTL ended, or it died
	wasRevoked   = "revoked"
	wasForgotten = "unknown" // nobody holds it, and its end is not in the journal
)

// holdID tells holds apart.
type holdID struct {
	key   string
	token uint64
}

// A ledger makes holds of a journal's events, in the order of their first event.
type ledger struct {
	holds []*hold
	byID  map[holdID]*hold
	first driver.Event // the oldest that was read; Seq 0: none
	last  uint64       // Seq of the newest
}

func newLedger() *ledger { return &ledger{byID: make(map[holdID]*hold)} }

// pass notes an event that is not of interest.
func (l *ledger) pass(e driver.Event) {
	if l.first.Seq == 0 {
		l.first = e
	}
	l.last = max(l.last, e.Seq)
}

func (l *ledger) add(e driver.Event) {
	l.pass(e)
	h := l.of(e)
	switch e.Kind {
	case driver.EventGranted, driver.EventHanded:
		h.Start, h.Waited, h.TookOver = utc(e.At), e.Kind == driver.EventHanded, e.TookOver
	case driver.EventReleased:
		h.end(e.At, wasReleased)
	case driver.EventExpired:
		h.end(e.At, wasExpired)
	case driver.EventRevoked:
		h.Revoked = newRevocation(e)
		if e.Now {
			h.end(e.At, wasRevoked)
		}
	}
}

// of returns the hold that e is about. The journal may have lost its beginning.
func (l *ledger) of(e driver.Event) *hold {
	id := holdID{e.Name, e.Token}
	h := l.byID[id]
	if h != nil {
		return h
	}
	mode := driver.Claim{Units: e.Units, Capacity: e.Capacity}.Mode()
	h = &hold{
		Key: e.Name, Token: strconv.FormatUint(e.Token, 10), Mode: mode.String(), Units: e.Units,
		Outcome: wasForgotten, Note: e.Note,
	}
	if mode == driver.Counted {
		h.Of = e.Capacity
	}
	if e.Fence != 0 {
		h.Fence = strconv.FormatUint(e.Fence, 10)
	}
	l.byID[id] = h
	l.holds = append(l.holds, h)
	return h
}

// end notes the first end: one that is kept can be revoked after its release.
func (h *hold) end(at time.Time, how string) {
	if h.End != nil {
		return
	}
	if h.Revoked != nil {
		how = wasRevoked
	}
	h.End, h.Outcome = utc(at), how
	if h.Start != nil {
		h.Held = new(h.End.Sub(*h.Start).Milliseconds())
	}
}

// present notes that h's claim is listed, so that it has not ended, unless the
// journal says so.
func (l *ledger) present(c dibs.Holder) {
	h := l.byID[holdID{c.Name, c.Token}]
	if h != nil && h.End == nil {
		h.Outcome, h.Held = heldStill, new(c.Age.Milliseconds())
	}
}

func newRevocation(e driver.Event) *revocation {
	r := &revocation{At: utc(e.At), Now: e.Now, Reason: e.Reason}
	if m := who.FindStringSubmatch(e.Reason); m != nil {
		r.By, r.Reason = m[1], m[2]
	}
	return r
}

// String says who revoked and why.
func (r *revocation) String() string {
	s := "revoked"
	if r.Now {
		s = "freed at once (--now)"
	}
	if r.By != "" {
		s += " by " + printable(r.By)
	}
	if r.Reason != "" {
		s += ": " + printable(r.Reason)
	}
	return s
}
