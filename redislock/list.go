package redislock

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

const (
	scanCount = 1000 // how many keys one step of a scan looks at
	listCount = 100  // how many names one script looks at
)

// List yields who holds and who waits. The names are those that are there while
// it scans the server's keys, all of them; each name is as of one instant. A name
// whose keys hold something else spoils no other: the error comes last.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[driver.Holder, error] {
	return func(yield func(driver.Holder, error) bool) {
		names, err := s.scan(ctx, s.link, s.keys.names(prefix), s.keys.nameOf)
		if err != nil {
			yield(driver.Holder{}, err)
			return
		}
		if s.keys.plain && !slices.Contains(names, prefix) && !s.listStranger(ctx, prefix, yield) {
			return
		}
		var broken []error
		for chunk := range slices.Chunk(names, listCount) {
			if !s.listNames(ctx, chunk, yield, &broken) {
				return
			}
		}
		tellBroken(broken, yield)
	}
}

// tellBroken ends a listing by the names of which nothing could be told.
func tellBroken(broken []error, yield func(driver.Holder, error) bool) {
	if len(broken) > 0 {
		yield(driver.Holder{}, errors.Join(broken...))
	}
}

// listNames yields who has some names, adds to broken why that can't be told of
// others, and tells whether to go on.
func (s *Store) listNames(ctx context.Context, names []string, yield func(driver.Holder, error) bool, broken *[]error) bool {
	all, err := s.evalAll(ctx, listScript, "", len(names), s.on(nil, names...), []string{strconv.Itoa(len(names))})
	if err != nil {
		yield(driver.Holder{}, err)
		return false
	}
	for i, name := range names {
		if !yieldHolders(name, all[i], yield, broken) {
			return false
		}
	}
	return true
}

// listStranger yields the program that has name and is no client of the store, of a
// plain layout that knows nothing of name: any key of the server may be a lock, so
// that only who asks for one by its name is told. What is no name, or not this
// user's to read, is nobody's.
func (s *Store) listStranger(ctx context.Context, name string, yield func(driver.Holder, error) bool) bool {
	if driver.CheckName(name) != nil {
		return true
	}
	var found *driver.Holder
	var failed error
	var broken []error
	s.listNames(ctx, []string{name}, func(h driver.Holder, err error) bool {
		found, failed = &h, err
		return true
	}, &broken)
	if failed == nil && found == nil && len(broken) > 0 && !errors.Is(broken[0], fs.ErrPermission) {
		found, failed = s.noLock(ctx, name)
	}
	switch {
	case errors.Is(failed, driver.ErrRejected):
		return true
	case failed != nil:
		return yield(driver.Holder{}, failed)
	}
	return found == nil || yield(*found, nil)
}

// noLock is a key of another program at name that is no lock, for want of a time to
// live or as another type: no claim is granted while it is there.
func (s *Store) noLock(ctx context.Context, name string) (*driver.Holder, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	left, err := s.link.do(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Pttl().Key(name).Build() }).AsInt64()
	h := &driver.Holder{Name: name, State: driver.Held, Units: 1, Capacity: 1, Foreign: true}
	switch {
	case err != nil:
		return nil, s.failed(ctx, name, err)
	case left == -1:
		h.Note = "a program that is not dibs, by a key without a time to live"
	case left >= 0:
		h.Note, h.Left = "a program that is not dibs, by a key that is no string", time.Duration(left)*time.Millisecond
	default: // it has gone
		return nil, nil
	}
	return h, nil
}

func yieldHolders(name string, all rueidis.RedisMessage, yield func(driver.Holder, error) bool, broken *[]error) bool {
	rows, err := all.ToArray()
	if err != nil {
		yield(driver.Holder{}, err)
		return false
	}
	f := &fields{rest: rows}
	if len(rows) == 2 {
		if word, _ := rows[0].ToString(); word == "failed" {
			text, _ := rows[1].ToString()
			*broken = append(*broken, reply(name, text))
			return true
		}
	}
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
