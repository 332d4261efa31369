package redislock

import (
	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// readAll reads the reply to AcquireAll of cs.
func readAll(cs []driver.Claim, m rueidis.RedisMessage) ([]driver.Grant, error) {
	msgs, err := m.ToArray()
	if err != nil {
		return nil, err
	}
	f := fields{rest: msgs}
	if len(msgs) > 1 && !msgs[0].IsArray() && f.text() == "refused" {
		at := f.number()
		if f.err != nil || at >= uint64(len(cs)) {
			return nil, errShort
		}
		first := f.text()
		return nil, readFields(cs[at].Name, first, f).err
	}
	if len(msgs) != len(cs) {
		return nil, errShort
	}
	var gs []driver.Grant
	for i, m := range msgs {
		a := read(cs[i].Name, m)
		if a.err != nil {
			return nil, a.err
		}
		a.grant.TTL = cs[i].TTL
		gs = append(gs, a.grant)
	}
	return gs, nil
}
