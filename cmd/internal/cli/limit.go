package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
)

const limitLong = `Run CMD unless the LIMIT of KEY is used up, for all who ask the store together:
10/1h lets ten run at once, and then one more every six minutes. If it is used up,
dibs says when to try again, exits 75 and runs nothing, and nothing is used; with
--wait it waits until one is back. There is no line: who asks first gets it.

It counts starts and holds nothing: put dibs run before it, or behind it, to run one
at a time. What was used stays used however the command ends. The limit may be
changed at any time, also while others still use the old one.

The command runs as under dibs run: in a process group of its own, signals are
passed on, and on Linux it ends with dibs. Its environment is that of dibs.`

// A limiter is one dibs limit.
type limiter struct {
	*runner
	n   int
	per time.Duration
}

func newLimit() *cobra.Command {
	l := &limiter{runner: newRunner("limit", "key", "limit")}
	l.free, l.prepare = true, l.parse
	cmd := l.command(l.work)
	cmd.Short = "Run a command at most so often"
	cmd.Long = limitLong + "\n\n" + exitCodes
	cmd.Example = `  dibs limit mail/ann 10/1h -- send-mail ann
  dibs limit api 5/1s --wait=1m -- curl https://api.example.com/
  dibs limit -q -E 0 report 1/24h -- report.sh     (a skip is no failure)`
	l.flags(
		cmd, "store", "wait", "timeout", "kill-after", "conflict-exit-code", "if-store-down",
		"die-with-parent", "report", "events", "quiet", "verbose",
	)
	return cmd
}

// longest is what the library keeps a record for at the most.
const longest = 10 * 365 * 24 * time.Hour

// parse reads the limit: 10/1h.
func (l *limiter) parse(operands []string) error {
	l.names = nil
	number, period, ok := strings.Cut(operands[1], "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return usagef("the limit %s: want so many per time, such as 10/1h; nothing was run", quote(operands[1]))
	}
	per, err := parseDuration(period)
	switch {
	case err != nil:
		return usagef("the limit %s: %v; nothing was run", quote(operands[1]), err)
	case per > longest:
		return usagef("the limit %s: at most per %v; nothing was run", quote(operands[1]), longest)
	case time.Duration(n) > per:
		return usagef("the limit %s: it is more than one a nanosecond; nothing was run", quote(operands[1]))
	}
	l.n, l.per = n, per
	return nil
}

// answerTime is how long a store that gives no clear answer is asked again without
// --wait: as long as dibs run takes about one.
const answerTime = 2 * time.Second

func (l *limiter) work(s *session) error {
	limit := s.client.Limit(l.key, l.n, l.per)
	ctx, done := l.waiting(s.in)
	first, stop := ctx, func() {}
	if !l.wait.wanted { // the library would ask for a whole TTL
		first, stop = context.WithTimeoutCause(ctx, answerTime, errWaitOver)
	}
	_, err := limit.Take(first)
	stop()
	var used *dibs.LimitedError
	if errors.As(err, &used) && l.wait.wanted {
		if !l.quiet {
			say(l.stderr, "waiting: %s", l.usedUp(used))
		}
		_, err = limit.Wait(ctx)
	}
	sig := done()
	l.result.Waited = time.Since(l.began).Milliseconds()
	switch {
	case sig != nil:
		return (&signalError{sig}).failure(l.key)
	case errors.As(err, &used):
		l.result.Retry = used.RetryAfter.Round(time.Millisecond).Milliseconds() + 1
		return s.skip(l.usedUp(used))
	case err != nil:
		return l.without(l.place.cannot(canLimit, l.key, s.over(err)))
	}
	return s.execute(nil)
}

func (l *limiter) usedUp(e *dibs.LimitedError) string {
	unit := 100 * time.Millisecond
	if e.RetryAfter > 10*time.Second {
		unit = time.Second
	}
	retry := (e.RetryAfter + unit - 1).Truncate(unit) // not a moment too early
	return fmt.Sprintf("the limit of %s is used up: %d in %s; try again in %s", quote(l.key), l.n, short(l.per), short(retry))
}
