package cli

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// who splits a note into who holds it and what for.
var who = regexp.MustCompile(`^(\S+@\S+ \(pid \d+\)): (.*)$`)

// inTheWay describes a refusal: `"backup" is held by ann@db1 (pid 812) since
// 10:02:11 (3m12s): pg_dump app`.
func inTheWay(now time.Time, e *dibs.HeldError) string {
	key, h := quote(e.Name), e.Holder
	switch {
	case h == nil && e.Reserved:
		return key + " is reserved for those who wait in line"
	case h == nil:
		return key + " is held by another"
	}
	return fmt.Sprintf("%s is %s by %s", key, stateOf(h.State), holding(now, h))
}

// holding says who, since when, and what for.
func holding(now time.Time, h *dibs.Holder) string {
	note := printable(h.Note)
	if h.Foreign {
		return orDash(note) + heldSince(now, h, " ")
	}
	name, work := "another", note
	if m := who.FindStringSubmatch(note); m != nil {
		name, work = m[1], m[2]
	}
	if work != "" {
		work = ": " + work
	}
	return fmt.Sprintf("%s %s%s", name, since(now, h.Age), work)
}

// heldSince is sep and since when h is held, if that is known.
func heldSince(now time.Time, h *dibs.Holder, sep string) string {
	if h.Foreign && h.Age == 0 {
		return ""
	}
	return sep + since(now, h.Age)
}

// leftOf is how much is left of h's time, if that is known.
func leftOf(h *dibs.Holder) string {
	if h.Foreign && h.Left == 0 {
		return ""
	}
	return short(h.Left)
}

// full says how many units of a key are held, if that is why one of slots units of
// it can't be had; else it is "".
func full(now time.Time, k keyStatus, slots int) string {
	units := 0
	for _, c := range k.Holders {
		if c.holder.Mode() != driver.Counted {
			return ""
		}
		units, slots = units+c.Units, min(slots, c.Of)
	}
	if slots < 2 || units < slots {
		return ""
	}
	return fmt.Sprintf("%s is full: %d of %d units are held, one of them by %s", quote(k.Key), units, slots, holding(now, &k.Holders[0].holder))
}

// stateOf is a state as it fits before "by".
func stateOf(s driver.State) string {
	switch s {
	case driver.Handed:
		return "handed over and about to be held"
	case driver.Kept:
		return "kept closed for its minimum time"
	case driver.Draining:
		return "kept closed after the death of its holder, held"
	case driver.Revoked:
		return "revoked, but not yet let go of,"
	}
	return "held"
}

// prospects says until when, on a line of its own: how it renews, when it would
// end, and its token.
func prospects(e *dibs.HeldError) string {
	h := e.Holder
	if h == nil {
		if e.RetryAfter > 0 {
			return fmt.Sprintf("that could change in %s", short(e.RetryAfter))
		}
		return ""
	}
	var parts []string
	switch {
	case h.Foreign && h.Left == 0:
	case h.Foreign:
		parts = append(parts, fmt.Sprintf("expires in %s unless it is extended", short(h.Left)))
	case h.State == driver.Held, h.State == driver.Handed:
		parts = append(parts, fmt.Sprintf("renews every %s, expires in %s if it stops", short(h.TTL/3), short(h.Left)))
	default:
		parts = append(parts, fmt.Sprintf("ends in %s", short(h.Left)))
	}
	if h.Fence != 0 {
		parts = append(parts, fmt.Sprintf("fence %d", h.Fence))
	}
	return strings.Join(parts, "; ")
}

// refusal is both lines, of which why is the first, and what to do next.
func refusal(why string, e *dibs.HeldError, advice string) string {
	text := why + "\n"
	if p := prospects(e); p != "" {
		text += p + ". "
	}
	return text + advice
}
