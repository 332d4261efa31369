package redislock

import (
	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// readAll reads the reply to AcquireAll of cs.
func readAll(cs []driver.Claim, msgs []rueidis.RedisMessage) ([]driver.Grant, error) {
	var gs []driver.Grant
	for i, m := range msgs {
		at, row := i, elements(m)
		if f := (&fields{rest: row}); len(msgs) == 1 && f.text() == "refused" {
			at, row = int(f.number()), f.rest
		}
		if at >= len(cs) {
			return nil, errShort
		}
		a := read(cs[at].Name, row)
		if a.err != nil {
			return nil, a.err
		}
		a.grant.TTL = cs[at].TTL
		gs = append(gs, a.grant)
	}
	if len(gs) != len(cs) {
		return nil, errShort
	}
	return gs, nil
}
