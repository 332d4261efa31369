package schedule

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// A Schedule is a list of expressions in a time zone. The zero value is never due.
type Schedule struct {
	parts  []part
	jitter time.Duration
	id     string
}

// A part is one expression.
type part interface {
	// next returns the first tick after t, or the zero time if there is none.
	next(t time.Time) time.Time
}

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom)

// New returns the schedule of the job id. jitter moves each tick by an amount
// below it, which id and the tick decide. The error says which expression is
// wrong.
func New(id string, expressions []string, loc *time.Location, jitter time.Duration) (*Schedule, error) {
	s := &Schedule{id: id, jitter: jitter}
	var errs []error
	for _, text := range expressions {
		p, err := parse(text, loc)
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", text, err))
			continue
		}
		s.parts = append(s.parts, p)
	}
	return s, errors.Join(errs...)
}

func parse(text string, loc *time.Location) (part, error) {
	if strings.Contains(text, "TZ=") {
		return nil, errors.New("the time zone has a key of its own, timezone")
	}
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		d, err := time.ParseDuration(every)
		switch {
		case err != nil:
			return nil, errors.New("want @every and a duration, such as 10m")
		case d < time.Second:
			return nil, errors.New("@every takes 1s or more")
		}
		return interval(d), nil
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("want 5 fields, @daily, or @every 10m")
	}
	var p part = wallClock{spec, loc}
	if everyHour(spec) {
		spec.Location = loc
		p = elapsed{spec}
	}
	if p.next(time.Now()).IsZero() {
		return nil, errors.New("it never happens within five years")
	}
	return p, nil
}

// everyHour tells whether spec matches every hour of the day.
func everyHour(spec *cron.SpecSchedule) bool {
	const hours = 1<<24 - 1
	return spec.Hour&hours == hours
}

// Next returns the first tick after t; the zero time if there is none.
func (s *Schedule) Next(t time.Time) time.Time {
	if s == nil {
		return time.Time{}
	}
	var first time.Time
	for _, p := range s.parts {
		if at := p.next(t); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Due returns when the tick is to happen: the tick itself, or later by its jitter.
func (s *Schedule) Due(tick time.Time) time.Time {
	if s.jitter <= 0 {
		return tick
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s@%d", s.id, tick.Unix())
	return tick.Add(time.Duration(h.Sum64() % uint64(s.jitter)).Truncate(time.Millisecond))
}

// Apart returns the least time between two of the next n ticks after t; 0 if there
// are not two.
func (s *Schedule) Apart(t time.Time, n int) (least time.Duration) {
	last := s.Next(t)
	for ; n > 1 && !last.IsZero(); n-- {
		next := s.Next(last)
		if d := next.Sub(last); !next.IsZero() && (least == 0 || d < least) {
			least = d
		}
		last = next
	}
	return least
}

// An interval is @every: its ticks are the multiples of it since 1970, so that
// all instances have the same ones.
type interval time.Duration

func (i interval) next(t time.Time) time.Time {
	ns := t.UnixNano()
	return time.Unix(0, ns-mod(ns, int64(i))+int64(i)).UTC()
}

func mod(a, b int64) int64 { return ((a % b) + b) % b }

// elapsed is an expression for every hour: the parser follows real time.
type elapsed struct{ spec *cron.SpecSchedule }

func (e elapsed) next(t time.Time) time.Time {
	return e.spec.Next(t.In(e.spec.Location)).UTC()
}
