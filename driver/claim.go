package driver

import (
	"math"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// Unlimited is the Capacity of a shared claim.
	Unlimited = math.MaxInt32
	// MaxName is the longest name, in bytes.
	MaxName = 512
	// MaxNote is the longest note, in bytes.
	MaxNote = 1024
	// MaxUnits is the largest Capacity of an exclusive or a counted claim.
	MaxUnits = Unlimited - 1
)

// A Claim is what one caller wants, or has, on one name. The caller picks ID
// before the first Acquire, so that an answer that never arrived can still be
// taken back.
type Claim struct {
	Name     string        // what is locked: see CheckName
	ID       string        // 128 random bits, one per attempt; never a host, a thread or a process
	From     string        // converting: the ID of the live claim that this one replaces (law 21)
	Token    uint64        // 0 until granted; then the token granted
	Units    int           // exclusive: Units == Capacity; shared: 1 of Unlimited; counted: n of N
	Capacity int           // how many units the claimant thinks Name has
	TTL      time.Duration // how long the claim outlives its last proof
	Patience time.Duration // how long a refused claim keeps its place in line without being heard of; 0 takes no place
	Keep     time.Duration // at-least-for, from the first grant or proof that the holder asked for (law 18)
	Delay    time.Duration // how long the units stay taken after an end that was not a release (law 49)
	Barging  bool          // the claim may pass the places ahead of it
	Note     string        // who holds it and why, for operators; at most MaxNote bytes
}

// Mode is the kind of a claim.
type Mode uint8

// The modes, as bits, so that Facts can name the set that a store supports.
const (
	Exclusive Mode = 1 << iota
	Shared
	Counted
)

// String returns the mode's name, or a list of names for a set.
func (m Mode) String() string {
	switch m {
	case 0:
		return "none"
	case Exclusive:
		return "exclusive"
	case Shared:
		return "shared"
	case Counted:
		return "counted"
	}
	var s string
	for _, one := range []Mode{Exclusive, Shared, Counted} {
		if m&one != 0 {
			if s != "" {
				s += ", "
			}
			s += one.String()
		}
	}
	return s
}

// Mode tells what kind of claim c is, by Units and Capacity alone.
func (c Claim) Mode() Mode {
	switch {
	case c.Capacity == Unlimited:
		return Shared
	case c.Units == c.Capacity:
		return Exclusive
	default:
		return Counted
	}
}

// Fits is law 2 without its line: whether a claim of units of capacity can be
// live together with claims that are live now. units is the sum of the units of
// the live claims, smallest the smallest capacity among them, exclusive whether
// one of them is exclusive; all three are zero if nothing is live.
func (c Claim) Fits(units int64, smallest int, exclusive bool) bool {
	if units == 0 {
		return true
	}
	if exclusive || c.Mode() == Exclusive {
		return false
	}
	return units+int64(c.Units) <= int64(min(smallest, c.Capacity))
}

// CheckName tells whether name may be locked: valid UTF-8 of 1 to MaxName bytes
// without control characters. Names are compared byte by byte. The error is an
// ErrRejected that says what is wrong.
func CheckName(name string) error {
	switch {
	case name == "":
		return Rejectedf(name, "the name is empty")
	case len(name) > MaxName:
		return Rejectedf(name[:32]+"...", "the name is %d bytes long; at most %d are allowed", len(name), MaxName)
	case !utf8.ValidString(name):
		return Rejectedf(name, "the name is not valid UTF-8")
	}
	if plain(name) {
		return nil
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return Rejectedf(name, "the name has a control character (%U)", r)
		}
	}
	return nil
}

// plain tells whether s is of printable ASCII, as most names are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Check tells whether a store with facts f may be asked for c, before any I/O,
// and returns c with its TTL rounded up to the store's step. The error is an
// ErrRejected, or [errors.ErrUnsupported] for a mode that the store lacks.
func (c Claim) Check(f Facts) (Claim, error) {
	if err := CheckName(c.Name); err != nil {
		return c, err
	}
	bad := func(format string, args ...any) (Claim, error) { return c, Rejectedf(c.Name, format, args...) }
	switch {
	case c.ID == "":
		return bad("the claim has no ID")
	case c.From == c.ID:
		return bad("the claim replaces itself")
	case c.Units < 1:
		return bad("%d units: at least 1 is needed", c.Units)
	case c.Capacity < 1 || c.Capacity > Unlimited:
		return bad("capacity %d: it must be 1 to %d", c.Capacity, MaxUnits)
	case c.Units > c.Capacity:
		return bad("%d units of %d", c.Units, c.Capacity)
	case c.Capacity == Unlimited && c.Units != 1:
		return bad("a shared claim has 1 unit, not %d", c.Units)
	case c.Patience < 0 || c.Keep < 0 || c.Delay < 0:
		return bad("a negative duration (patience %v, keep %v, delay %v)", c.Patience, c.Keep, c.Delay)
	case max(c.Patience, c.Keep, c.Delay) > f.MaxTTL:
		return bad("a duration over %v (patience %v, keep %v, delay %v)", f.MaxTTL, c.Patience, c.Keep, c.Delay)
	case len(c.Note) > MaxNote:
		return bad("the note is %d bytes long; at most %d are allowed", len(c.Note), MaxNote)
	case !utf8.ValidString(c.Note):
		return bad("the note is not valid UTF-8")
	}
	ttl, err := f.RoundTTL(c.TTL)
	if err != nil {
		return bad("%v", err)
	}
	c.TTL = ttl
	if m := c.Mode(); f.Modes&m == 0 {
		return c, Unsupportedf("%q: %s claims are not supported by %s (it has: %s)", c.Name, m, f.Driver, f.Modes)
	}
	return c, nil
}
