package dibs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dibslock/dibs/driver"
)

// Off sets a duration of Settings to zero where leaving it zero would inherit.
const Off time.Duration = -1

// Order says whether a waiter may pass those who came before it.
type Order string

// The orders.
const (
	FirstCome Order = "first-come" // first come, first served, where the store keeps a line
	Barging   Order = "barging"    // whoever asks while it is free: more throughput, no fairness
)

// StoreDown says what a wait does about a store that gives no clear answer.
type StoreDown string

// The choices.
const (
	FailDown StoreDown = "fail" // after one TTL without a clear answer, return it
	WaitDown StoreDown = "wait" // go on until the ctx ends
)

// Settings say how a claim behaves. The zero value of a field inherits: from the
// client that With was called on, and at the top from the default. Off sets a
// duration to zero. In JSON durations are strings such as "30s", and an unknown
// field is an error.
type Settings struct {
	TTL         time.Duration `json:"ttl"`          // how long a claim outlives its last proof; default 30s. A dead holder blocks others this long
	Patience    time.Duration `json:"patience"`     // how long a place in line outlives its waiter; default 5s
	Keep        time.Duration `json:"keep"`         // at-least-for: hold the name this long from the grant, also after a release; default Off
	Delay       time.Duration `json:"delay"`        // keep the name closed this long after an end that was not a release; default Off
	MaxHold     time.Duration `json:"max_hold"`     // stop renewing, and end the lease, after this long; default Off: never
	CallTimeout time.Duration `json:"call_timeout"` // how long one call of the store may take; default 5s, and never over TTL/3
	Poll        time.Duration `json:"poll"`         // ask again at least this often while waiting; default 1s, which is also the most
	Order       Order         `json:"order"`        // default FirstCome
	StoreDown   StoreDown     `json:"store_down"`   // default FailDown
	Note        string        `json:"note"`         // who holds it and why, for operators, in UTF-8; default user@host (pid n): program
}

var defaults = Settings{
	TTL:         30 * time.Second,
	Patience:    5 * time.Second,
	Keep:        Off,
	Delay:       Off,
	MaxHold:     Off,
	CallTimeout: 5 * time.Second,
	Poll:        time.Second,
	Order:       FirstCome,
	StoreDown:   FailDown,
}

// durations lists the durations with their names as in JSON.
func (s *Settings) durations() map[string]*time.Duration {
	return map[string]*time.Duration{
		"ttl": &s.TTL, "patience": &s.Patience, "keep": &s.Keep, "delay": &s.Delay,
		"max_hold": &s.MaxHold, "call_timeout": &s.CallTimeout, "poll": &s.Poll,
	}
}

// UnmarshalJSON reads durations as strings, and refuses fields that it does not
// know.
func (s *Settings) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	durations := s.durations()
	texts := map[string]*string{"order": (*string)(&s.Order), "store_down": (*string)(&s.StoreDown), "note": &s.Note}
	for key, value := range raw {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return fmt.Errorf("settings: %q: want a string: %w", key, err)
		}
		if d := durations[key]; d != nil {
			parsed, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("settings: %q: %w", key, err)
			}
			*d = parsed
			if parsed == 0 {
				*d = Off
			}
		} else if t := texts[key]; t != nil {
			*t = text
		} else {
			return fmt.Errorf("settings: unknown field %q", key)
		}
	}
	return nil
}

// over returns base with the fields that s sets.
func (s Settings) over(base Settings) Settings {
	from, to := s.durations(), base.durations()
	for key, d := range from {
		if *d != 0 {
			*to[key] = *d
		}
	}
	if s.Order != "" {
		base.Order = s.Order
	}
	if s.StoreDown != "" {
		base.StoreDown = s.StoreDown
	}
	if s.Note != "" {
		base.Note = s.Note
	}
	return base
}

// resolved checks settings with every field set, replaces Off by zero, and says
// everything that is wrong at once.
func (s Settings) resolved(f driver.Facts) (Settings, error) {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for key, d := range s.durations() {
		switch {
		case *d == Off && (key == "ttl" || key == "call_timeout" || key == "poll"):
			bad("%s: it cannot be off", key)
		case *d == Off:
			*d = 0
		case *d < 0:
			bad("%s %v: it must not be negative", key, *d)
		case *d > f.MaxTTL && key != "call_timeout" && key != "max_hold" && key != "ttl":
			bad("%s %v: %s takes at most %v", key, *d, f.Driver, f.MaxTTL)
		}
	}
	if s.TTL > 0 {
		if _, err := f.RoundTTL(s.TTL); err != nil {
			bad("%v", err)
		}
	}
	if s.Poll > time.Second {
		bad("poll %v: at most 1s, so that no wake-up is lost for longer", s.Poll)
	}
	if s.Order != FirstCome && s.Order != Barging {
		bad("order %q: want %q or %q", s.Order, FirstCome, Barging)
	}
	if s.StoreDown != FailDown && s.StoreDown != WaitDown {
		bad("store_down %q: want %q or %q", s.StoreDown, FailDown, WaitDown)
	}
	if len(s.Note) > driver.MaxNote {
		bad("note: %d bytes; at most %d are allowed", len(s.Note), driver.MaxNote)
	}
	if !utf8.ValidString(s.Note) {
		bad("note: it is not valid UTF-8")
	}
	if wrong != nil {
		return s, driver.Rejectedf("", "settings: %s", strings.Join(wrong, "; "))
	}
	s.CallTimeout = min(s.CallTimeout, s.TTL/3)
	return s, nil
}

// defaultNote says who this process is.
func defaultNote() string {
	user := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"))
	switch uid := os.Getuid(); { // a name service may be asked over the network: we don't wait for it
	case user != "":
	case uid == 0:
		user = "root"
	default:
		user = fmt.Sprintf("uid %d", uid)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	note := fmt.Sprintf("%s@%s (pid %d): %s", user, host, os.Getpid(), filepath.Base(os.Args[0]))
	return strings.ToValidUTF8(note, "\uFFFD") // a file's name may be any bytes
}
