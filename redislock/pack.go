package redislock

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// A packer builds one argument of a script that has many fields, in MessagePack,
// which scripts unpack in one step.
type packer []byte

// array begins an array of n < 65536 elements.
func (p packer) array(n int) packer {
	if n < 16 {
		return append(p, 0x90|byte(n))
	}
	return binary.BigEndian.AppendUint16(append(p, 0xdc), uint16(n))
}

func (p packer) text(s string) packer {
	switch n := len(s); {
	case n < 32:
		p = append(p, 0xa0|byte(n))
	case n < 1<<8:
		p = append(p, 0xd9, byte(n))
	default:
		p = binary.BigEndian.AppendUint16(append(p, 0xda), uint16(n))
	}
	return append(p, s...)
}

// number appends n >= 0.
func (p packer) number(n int64) packer {
	if n < 128 {
		return append(p, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(p, 0xcf), uint64(n))
}

func (p packer) flag(b bool) packer {
	if b {
		return p.number(1)
	}
	return p.number(0)
}

// span appends d in microseconds, rounded up.
func (p packer) span(d time.Duration) packer { return p.number(micros(d)) }

func micros(d time.Duration) int64 {
	us := d / time.Microsecond
	if us*time.Microsecond < d {
		us++
	}
	return int64(us)
}

// spans are a claim's durations as scripts want them. Most claims of a program
// have the same.
type spans struct {
	ttl, keep, delay time.Duration
	life, grace      string // see lib.lua
}

// newSpans has the rule of save and tomb in lib.lua: a key that holds c alone is
// kept from each proof on until c is gone, and a while longer for the next grant
// to be told of its death.
func newSpans(c driver.Claim) *spans {
	life := millis(max(c.TTL, c.Keep)+c.Delay+min(max(c.TTL, 2*time.Second), time.Minute)) + 1
	return &spans{
		ttl: c.TTL, keep: c.Keep, delay: c.Delay,
		life:  strconv.FormatInt(life, 10),
		grace: strconv.FormatInt(life-millis(c.TTL)-1, 10),
	}
}

func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func (s *Store) spansOf(c driver.Claim) *spans {
	last := s.spans.Load()
	if last == nil || last.ttl != c.TTL || last.keep != c.Keep || last.delay != c.Delay {
		last = newSpans(c)
		s.spans.Store(last)
	}
	return last
}

// head appends how c begins as a request: up to the blank after its ID.
func (p packer) head(c driver.Claim, s *spans) packer {
	p = append(append(p, s.life...), ' ')
	p = append(append(p, s.grace...), ' ')
	p = append(strconv.AppendInt(p, int64(len(c.ID)), 10), ' ')
	return append(append(p, c.ID...), ' ')
}

// request appends c as a request: an array of lib.lua, in which the script fills in
// what is 0 or empty here.
func (p packer) request(c driver.Claim, s *spans, channel string) packer {
	return p.
		head(c, s).array(19).
		text("").text("").text("").
		number(int64(c.Units)).number(int64(c.Capacity)).
		number(int64(driver.Held)).number(0).number(0).number(0).
		span(c.TTL).span(c.Keep).span(c.Delay).
		number(0).number(0).
		text(channel).text(c.Note).text(c.From).
		span(c.Patience).flag(c.Barging)
}

// short appends how c, which was granted, begins in its short form.
func (p packer) short(c driver.Claim, s *spans) packer {
	p = strconv.AppendUint(append(p, 'f'), c.Token/1e6, 10)
	p = strconv.AppendUint(append(p, ' '), c.Token%1e6, 10)
	return append(p, ' ').head(c, s)
}

// packProof packs what renew.lua asks of c.
func packProof(c driver.Claim, s *spans) string {
	p := packer(strconv.AppendInt(make([]byte, 0, 112), micros(c.Patience), 10))
	return rueidis.BinaryString(append(p, ' ').short(c, s))
}

// An unpacker reads what a packer has built. The first element that is not as
// expected makes all that follow zero, and err tells.
type unpacker struct {
	rest string
	err  error
}

// take takes n bytes.
func (u *unpacker) take(n int) string {
	if u.err == nil && n > len(u.rest) {
		u.err = errShort
	}
	if u.err != nil {
		return ""
	}
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

// big reads n bytes as a number, the highest first.
func (u *unpacker) big(n int) (x int64) {
	for _, b := range []byte(u.take(n)) {
		x = x<<8 | int64(b)
	}
	return x
}

func (u *unpacker) text() string {
	switch b := u.big(1); {
	case b&0xe0 == 0xa0:
		return u.take(int(b & 0x1f))
	case b == 0xd9:
		return u.take(int(u.big(1)))
	case b == 0xda:
		return u.take(int(u.big(2)))
	}
	u.fail()
	return ""
}

func (u *unpacker) number() int64 {
	switch b := u.big(1); {
	case b < 128:
		return b
	case b == 0xcf:
		return u.big(8)
	}
	u.fail()
	return 0
}

func (u *unpacker) fail() {
	if u.err == nil {
		u.err = errShort
	}
}

// claim reads what request wrote behind the head: what others may see of it.
func (u *unpacker) claim() (c driver.Claim) {
	if u.take(3) != "\xdc\x00\x13" { // an array of 19
		u.fail()
	}
	for range 3 {
		u.text()
	}
	c.Units, c.Capacity = int(u.number()), int(u.number())
	for range 4 {
		u.number()
	}
	c.TTL = time.Duration(u.number()) * time.Microsecond
	for range 4 {
		u.number()
	}
	u.text() // its channel
	c.Note = u.text()
	return c
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }
