package redislock

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

const (
	scanCount = 1000 // how many keys one step of a scan looks at
	listCount = 100  // how many names one script looks at
)

// List yields who holds and who waits. The names are those that are there while
// it scans the server's keys, all of them; each name is as of one instant.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		names, err := s.scan(ctx, s.link, s.keys.names(prefix), s.keys.nameOf)
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		for chunk := range slices.Chunk(names, listCount) {
			if !s.listNames(ctx, chunk, yield) {
				return
			}
		}
	}
}

// listNames yields who has some names, and tells whether to go on.
func (s *Store) listNames(ctx context.Context, names []string, yield func(driver.Holder, error) bool) bool {
	all, err := s.evalAll(ctx, listScript, "", len(names), s.on(nil, names...), []string{strconv.Itoa(len(names))})
	if err != nil {
		yield(driver.Holder{}, err)
		return false
	}
	for i, name := range names {
		if !yieldHolders(name, all[i], yield) {
			return false
		}
	}
	return true
}

func yieldHolders(name string, all rueidis.RedisMessage, yield func(driver.Holder, error) bool) bool {
	rows, err := all.ToArray()
	if err != nil {
		yield(driver.Holder{}, err)
		return false
	}
	f := &fields{rest: rows}
	for range rows {
		h := f.holder(name)
		if f.err != nil {
			yield(driver.Holder{}, f.err)
			return false
		}
		if !yield(*h, nil) {
			return false
		}
	}
	return true
}

// scan returns what of makes of a server's keys that match pattern, sorted.
func (s *Store) scan(ctx context.Context, w wire, pattern string, of func(key string) (string, bool)) ([]string, error) {
	var found []string
	for cursor := uint64(0); ; {
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		e, err := w.do(ctx, func(b rueidis.Builder) rueidis.Completed {
			return b.Scan().Cursor(cursor).Match(pattern).Count(scanCount).Type("string").Build()
		}).AsScanEntry()
		if err != nil {
			return nil, s.failed(ctx, "", err)
		}
		for _, key := range e.Elements {
			if name, ok := of(key); ok {
				found = append(found, strings.Clone(name))
			}
		}
		if cursor = e.Cursor; cursor == 0 {
			slices.Sort(found)
			return slices.Compact(found), nil // a scan may tell a key twice
		}
	}
}
