package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func newFollow() *cobra.Command {
	f := &follower{listing: listing{lasts: true}, interval: duration{Duration: time.Second}}
	cmd := &cobra.Command{
		Use:   "watch [GLOB]",
		Short: "Watch who holds what and who waits, as it changes",
		Long: `Show who holds what and who waits, until a signal ends it (and the exit code is
128 plus the signal's number). GLOB is as in dibs ls.

On a terminal the list is drawn anew every --interval. Elsewhere, and with --json,
there is a line for each change; it begins with what is held already. A hold that
is shorter than --interval can be missed: dibs history has it.

With --json each line is an object with: at (this host's clock), key, change, claim
(as in dibs ls, as last seen), and initial (it was so before). change is held,
handed, kept, draining, revoked or waiting (what the claim is from now on), freed or
left (it is gone; who left the line was granted the key, or gave up), store_down
(with error) or store_up.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := pattern(args)
			if err != nil {
				return err
			}
			if f.interval.Duration < minInterval {
				return usagef("--interval %s: it must be at least %s", short(f.interval.Duration), short(minInterval))
			}
			f.glob, f.out, f.err = g, cmd.OutOrStdout(), cmd.ErrOrStderr()
			return f.run(cmd)
		},
	}
	f.flags(cmd)
	cmd.Flags().Var(&f.interval, "interval", "how often to look")
	return cmd
}

// minInterval spares the store.
const minInterval = 50 * time.Millisecond

// lookTime is how long the store may take to answer before it counts as down.
const lookTime = 5 * time.Second

// A follower is one dibs watch.
type follower struct {
	listing
	interval duration
	glob     *glob
	out, err io.Writer

	q      *question
	last   []keyStatus
	seen   time.Time // when last was read; zero: never
	down   error     // why the store gave no clear answer; nil: it did
	screen *screen   // nil: a line for each change
}

// run looks until a signal comes, or the store refuses.
func (f *follower) run(cmd *cobra.Command) error {
	ctx, stop := untilSignal()
	defer stop()
	q, err := f.open(ctx, cmd)
	if err != nil {
		return signalOr(ctx, err)
	}
	defer q.close()
	f.q = q
	if !f.json {
		f.screen = newScreen(f.out)
	}
	tick := time.NewTicker(f.interval.Duration)
	defer tick.Stop()
	for {
		if err := f.look(ctx); err != nil {
			return signalOr(ctx, err)
		}
		select {
		case <-ctx.Done():
			return signalOr(ctx, nil)
		case <-tick.C:
		}
		if readerGone(f.out) {
			return &failure{code: brokenPipe}
		}
	}
}

// look reads the store and shows what is new. A store that is down is waited for,
// unless it never answered.
func (f *follower) look(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := listed(bounded, f.q.place, f.q.client, f.glob.prefix, f.glob.match.MatchString)
	now := time.Now()
	var fail *failure
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && (f.seen.IsZero() || !errors.As(err, &fail) || fail.code != exitStoreDown):
		return err
	case f.screen != nil:
		if err == nil {
			f.last, f.seen = all, now
		}
		return f.draw(now, err)
	}
	return f.tell(now, all, err)
}

// tell writes a line for each change.
func (f *follower) tell(now time.Time, all []keyStatus, err error) error {
	var changes []change
	switch {
	case err != nil && f.down == nil:
		changes = []change{{At: utc(now), Change: storeDown, Error: err.Error()}}
	case err == nil && f.down != nil:
		changes = []change{{At: utc(now), Change: storeUp}}
	}
	f.down = err
	if err == nil {
		diff := differences(now, f.last, all)
		for i := range diff {
			diff[i].Initial = f.seen.IsZero()
		}
		changes = append(changes, diff...)
		f.last, f.seen = all, now
	}
	for _, c := range changes {
		if err := f.write(c); err != nil {
			return failf(exitFailed, "can't write: %v", err)
		}
	}
	return nil
}

func (f *follower) write(c change) error {
	switch {
	case f.json:
		return printJSON(f.out, c)
	case c.Change == storeDown:
		say(f.err, "%s", c.Error)
		return nil
	case c.Change == storeUp:
		say(f.err, "the store %s answers again", f.q.place)
		return nil
	}
	_, err := fmt.Fprintln(f.out, c.line())
	return err
}

// untilSignal returns a context that a signal ends, unless it was ignored when
// dibs was started. SIGPIPE keeps its usual effect.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, sig := range slices.DeleteFunc(slices.Clone(ending), signal.Ignored) {
		signal.Notify(signals, sig)
	}
	over := make(chan struct{})
	go func() { // ends with ctx, which stop ends
		defer close(over)
		select {
		case sig := <-signals:
			cancel(&signalError{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-over
		signal.Stop(signals)
	}
}

// signalOr is how a command ends that a signal may have ended: quietly, or with
// err.
func signalOr(ctx context.Context, err error) error {
	sig := signalOf(ctx)
	if sig == nil {
		return err
	}
	n, _ := sig.sig.(syscall.Signal)
	return &failure{code: exitSignal + int(n)}
}
