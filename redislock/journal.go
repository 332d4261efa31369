package redislock

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// eventCount is how many events one call reads.
const eventCount = 500

// Events yields the journal after seq. It is a stream that keeps about the newest
// 10,000 events. It is unsupported if the journal of this client is off.
//
// A claim that expired is written when a call on its name notices; if none does
// for as long as the claim's TTL (two seconds at least, a minute at most), it is
// not written at all.
func (s *Store) Events(ctx context.Context, prefix string, seq uint64) iter.Seq2[driver.Event, error] {
	return func(yield func(driver.Event, error) bool) {
		if err := s.enter(ctx); err != nil {
			yield(driver.Event{}, err)
			return
		}
		if !s.journal {
			yield(driver.Event{}, driver.Unsupportedf("the journal of this client is off: open it with ?journal=on"))
			return
		}
		for {
			entries, err := s.link.do(ctx, func(b rueidis.Builder) rueidis.Completed {
				return b.Xrange().Key(s.keys.journal).Start("(0-" + digits(seq)).End("+").Count(eventCount).Build()
			}).AsXRange()
			if err != nil {
				yield(driver.Event{}, s.failed(ctx, "", err))
				return
			}
			for _, entry := range entries {
				e := event(entry)
				seq = e.Seq
				if strings.HasPrefix(e.Name, prefix) && !yield(e, nil) {
					return
				}
			}
			if len(entries) < eventCount {
				return
			}
			if err := s.enter(ctx); err != nil {
				yield(driver.Event{}, err)
				return
			}
		}
	}
}

// event reads what lib.lua's log writes.
func event(entry rueidis.XRangeEntry) driver.Event {
	f := entry.FieldValues
	number := func(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 64); return n }
	_, seq, _ := strings.Cut(entry.ID, "-")
	return driver.Event{
		Seq:      number(seq),
		At:       time.UnixMicro(int64(number(f["at"]))),
		Kind:     driver.EventKind(number(f["kind"])),
		Name:     f["name"],
		Token:    number(f["token"]),
		Fence:    number(f["fence"]),
		Units:    int(number(f["units"])),
		Capacity: int(number(f["capacity"])),
		TookOver: f["took"] == "1",
		Now:      f["now"] == "1",
		Note:     f["note"],
		Reason:   f["reason"],
	}
}
