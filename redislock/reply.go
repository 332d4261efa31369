package redislock

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// fields reads a script's reply about one claim, element by element. The first
// element that is not as expected makes all that follow zero, and err tells.
type fields struct {
	rest []rueidis.RedisMessage
	err  error
}

func (f *fields) text() string {
	if f.err != nil {
		return ""
	}
	if len(f.rest) == 0 {
		f.err = errShort
		return ""
	}
	s, err := f.rest[0].ToString()
	f.rest, f.err = f.rest[1:], err
	return s
}

var errShort = fmt.Errorf("redis: a reply is too short")

func (f *fields) number() uint64 {
	s := f.text()
	if f.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	f.err = err
	return n
}

// span reads microseconds, which may be negative.
func (f *fields) span() time.Duration {
	s := f.text()
	if f.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	f.err = err
	return time.Duration(n) * time.Microsecond
}

// words reads the words of one element of a reply, as fields does its elements.
type words struct {
	rest string
	err  error
}

func (w *words) next() (word string) {
	if w.rest == "" && w.err == nil {
		w.err = errShort
	}
	word, w.rest, _ = strings.Cut(w.rest, " ")
	return word
}

func (w *words) number() uint64 { return number(w.next(), &w.err) }

// number reads digits; an error goes where the first one goes.
func number(s string, first *error) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if *first == nil {
		*first = err
	}
	return n
}

// span reads microseconds, which may be negative.
func (w *words) span() time.Duration {
	n, err := strconv.ParseInt(w.next(), 10, 64)
	if w.err == nil {
		w.err = err
	}
	return time.Duration(n) * time.Microsecond
}

// holder reads a holder of name, if one follows.
func (f *fields) holder(name string) *driver.Holder {
	if f.err != nil || len(f.rest) == 0 {
		return nil
	}
	w := words{rest: f.text()}
	h := &driver.Holder{
		Name:     name,
		State:    driver.State(w.number()),
		Token:    w.number(),
		Fence:    w.number(),
		Units:    int(w.number()),
		Capacity: int(w.number()),
		Age:      w.span(),
		Left:     w.span(),
		TTL:      w.span(),
		Note:     w.rest,
	}
	if f.err == nil {
		f.err = w.err
	}
	if h.State == driver.Waiting {
		h.Place, h.Token = h.Token, 0
	} else {
		h.Foreign = h.Token == 0
	}
	return h
}

// answer is a reply about one claim on a name.
type answer struct {
	grant driver.Grant // without its TTL
	fresh bool         // the fence is not told: it is the token, or there is none
	err   error
}

// read reads the reply m about a claim on name: an array, its first element
// alone, or a number, which is the token if something was granted.
func read(name string, m rueidis.RedisMessage) answer {
	if m.IsInt64() {
		n, err := m.ToInt64()
		return answer{grant: driver.Grant{Token: uint64(n)}, fresh: true, err: err}
	}
	if !m.IsArray() {
		s, err := m.ToString()
		return readFields(name, s, fields{err: err})
	}
	row, err := m.ToArray()
	f := fields{row, err}
	first := f.text()
	return readFields(name, first, f)
}

// readFields reads a reply that begins with first.
func readFields(name, first string, f fields) (a answer) {
	kind, about, _ := strings.Cut(first, " ")
	switch kind {
	case "granted":
		a.grant, f.err = readGrant(about)
	case "proved", "released":
	case "held":
		w := words{rest: about}
		e := &driver.HeldError{Name: name, RetryAfter: w.span(), Reserved: w.number() == 1, Deadlock: w.number() == 1, Place: f.number()}
		if f.err == nil {
			f.err = w.err
		}
		e.Holder = f.holder(name)
		a.err = e
	case "waits":
		a.err, f.err = readWaits(name, about, f)
	case "nothing":
		a.err = &driver.NotHeldError{Name: name, By: f.holder(name)}
	case "revoked":
		a.err = driver.ErrRevoked
	case "other":
		a.err = driver.Rejectedf(name, "the claim was asked for before with other units, another capacity or another claim to replace")
	case "failed":
		a.err = reply(name, f.text())
	default:
		if f.err == nil {
			f.err = fmt.Errorf("redis: an unknown reply %q", kind)
		}
	}
	if f.err != nil {
		return answer{err: f.err} // unknown
	}
	return a
}

// readGrant reads "<token> <fence> <took over>".
func readGrant(s string) (g driver.Grant, err error) {
	token, s, _ := strings.Cut(s, " ")
	fence, took, _ := strings.Cut(s, " ")
	if g.Token, err = strconv.ParseUint(token, 10, 64); err != nil {
		return g, err
	}
	g.Fence, err = strconv.ParseUint(fence, 10, 64)
	g.TookOver = took == "1"
	return g, err
}

// readWaits reads the refusal of a claim that has a place now: "<seconds>
// <microseconds>" of the server's clock, its number, and the state of the name in
// the short form of lib.lua.
func readWaits(name, about string, f fields) (*driver.HeldError, error) {
	at := words{rest: about}
	now := at.number() * 1e6
	now += at.number()
	e := &driver.HeldError{Name: name, Place: f.number()}
	w := words{rest: strings.TrimPrefix(f.text(), "h")}
	ends := w.number()
	w.next() // the end of the line's keys
	granted := w.number()
	w.next() // when it was heard of
	h := &driver.Holder{Name: name, State: driver.State(w.number())}
	w.next() // whether it took over
	h.Token = number(strings.TrimPrefix(w.next(), "f"), &w.err) * 1e6
	h.Token += w.number()
	w.next() // its life
	w.next() // its grace
	id := w.number()
	if err := cmp.Or(at.err, f.err, w.err); err != nil || id >= uint64(len(w.rest)) {
		return nil, cmp.Or(err, errShort)
	}
	u := unpacker{rest: w.rest[id+1:]}
	c := u.claim()
	h.Fence, h.Age, h.Left = h.Token, since(granted, now), since(now, ends)
	h.Units, h.Capacity, h.TTL, h.Note = c.Units, c.Capacity, c.TTL, c.Note
	e.Holder, e.RetryAfter = h, max(time.Millisecond, h.Left)
	return e, u.err
}

// since is how long before b a was; both are microseconds.
func since(a, b uint64) time.Duration { return time.Duration(int64(b-a)) * time.Microsecond }
