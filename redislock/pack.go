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

// packed begins an array of n < 65536 elements.
func packed(n int) packer {
	p := make(packer, 0, 160)
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

// packClaim packs c as the array of lib.lua, in which the script fills in what
// is 0 or empty here.
func packClaim(c driver.Claim, channel string) string {
	return rueidis.BinaryString(packed(19).
		text(c.ID).text("").text("").
		number(int64(c.Units)).number(int64(c.Capacity)).
		number(int64(driver.Held)).number(0).number(0).number(0).
		span(c.TTL).span(c.Keep).span(c.Delay).
		number(0).number(0).
		text(channel).text(c.Note).text(c.From).
		span(c.Patience).flag(c.Barging))
}

// life is how long a key that holds c alone is kept from each proof on: until c is
// gone, and a while longer for the next grant to be told of its death. Scripts
// have the same rule in save and tomb.
func life(c driver.Claim) string {
	d := max(c.TTL, c.Keep) + c.Delay + min(max(c.TTL, 2*time.Second), time.Minute)
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

// packID packs an ID alone, as it stands in a claim.
func packID(id string) string {
	return rueidis.BinaryString(make(packer, 0, len(id)+3).text(id))
}

// packProof packs what renew.lua asks of c.
func packProof(c driver.Claim) string {
	p := make(packer, 0, 96)
	p = strconv.AppendUint(p, c.Token, 10)
	p = strconv.AppendInt(append(p, ' '), micros(c.TTL), 10)
	p = strconv.AppendInt(append(p, ' '), micros(c.Patience), 10)
	return rueidis.BinaryString(append(p, ' ').text(c.ID))
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }
