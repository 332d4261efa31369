package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
)

const onceLong = `Run CMD unless it was done before under KEY, by anybody who asks the store. It is
done when CMD exits 0, and is remembered for --keep; then dibs says so, runs nothing
and exits 0. A CMD that fails, is stopped or can't be started is not done, and the
next one runs it again. While another is at it, dibs exits 75 at once; with --wait it
waits for its end, and runs CMD if that one has failed.

It runs under the lock once/KEY, and is stopped if that is lost, as by dibs run. If
dibs or its host dies in the middle, or the lock is lost, nobody knows how far CMD
came. The next one runs it again with DIBS_AGAIN=1 in its environment; with
--interrupted fail it exits 76 instead, until somebody has looked and says --forget.
So CMD must bear to be run again, or have the resource refuse a smaller DIBS_FENCE.

KEY alone says what is done: the command line isn't looked at, since it may well
differ from host to host. To have the same KEY refused for anything else, name what
it stands for with --request, such as the hash of a file.`

// A once is one dibs once.
type once struct {
	*runner
	keep        duration
	request     text
	interrupted text
	forget      bool
}

func newOnce() *cobra.Command {
	o := &once{
		runner:      newRunner("once", "key"),
		keep:        duration{Duration: longest},
		request:     text{kind: "TEXT"},
		interrupted: text{kind: "rerun|fail", value: "rerun"},
	}
	o.prepare = o.parse
	cmd := o.command(o.work)
	cmd.Short = "Run a command unless it was done before"
	cmd.Long = onceLong + limits() + "\n\n" + exitCodes
	cmd.Example = `  dibs once migrate/42 --wait -- ./migrate 42      (on all instances: one does it)
  dibs once invoice/2026-03 --keep 2160h -- invoice.sh
  dibs once invoice/2026-03 --forget`
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.forget {
			return o.forgets(cmd, args)
		}
		return run(cmd, args)
	}
	o.flags(cmd, "store", "wait")
	f := cmd.Flags()
	f.Var(&o.keep, "keep", "remember for DUR that it was done (at most and by default ten years)")
	f.Var(&o.interrupted, "interrupted", "after a run that ended without a word: rerun, or fail with 76")
	f.Var(&o.request, "request", "fail with 76 if KEY was used with another TEXT")
	f.BoolVar(&o.forget, "forget", false, "forget that it was done, and run nothing")
	o.flags(
		cmd, "ttl", "timeout", "kill-after", "grace", "conflict-exit-code", "meta", "reason", "jitter", "if-store-down",
		"die-with-parent", "report", "events", "quiet", "verbose",
	)
	return cmd
}

// parse names the lock: it is the library's own for the key.
func (o *once) parse([]string) error {
	o.names = []string{"once/" + o.key}
	switch {
	case o.keep.Duration > longest:
		return usagef("--keep %v: at most %v; nothing was run", o.keep.Duration, longest)
	case len(o.request.value) > dibs.MaxRequest:
		return usagef("--request is %d bytes long; at most %d are allowed: use a hash; nothing was run", len(o.request.value), dibs.MaxRequest)
	case !slices.Contains([]string{"rerun", "fail"}, o.interrupted.value):
		return usagef("--interrupted %s: want rerun or fail", quote(o.interrupted.value))
	}
	return checkKey(o.names[0])
}

// of is the library's Once, under a lease if there is one.
func (o *once) of(c *dibs.Client, lease *dibs.Lease) *dibs.Once {
	options := dibs.OnceOptions{Request: o.request.value, Lease: lease}
	if o.interrupted.value == "fail" {
		options.Interrupted = dibs.Refuse
	}
	return c.Once(o.key, o.keep.Duration).With(options)
}

func (o *once) work(s *session) error {
	ctx, done := o.waiting(s.in)
	past, err := o.of(s.client, nil).State(ctx)
	switch sig := done(); {
	case sig != nil:
		return (&signalError{sig}).failure(o.key)
	case err != nil:
		return o.without(o.refused(s, err))
	case past.Status == dibs.Done: // that takes no lock
		return o.done(past)
	}
	lease, err := s.lock(s.client.Mutex(o.names[0]))
	if err != nil {
		return err
	}
	return s.hold(lease, func() error { return o.under(s, lease) })
}

// under runs the command under the lease, unless it was done in the meantime.
func (o *once) under(s *session, lease *dibs.Lease) error {
	ctx, done := o.heeding(context.Background(), s.in)
	var ended error
	_, ran, err := o.of(s.client, lease).TryCall(ctx, func(_ context.Context, run dibs.Run) ([]byte, error) {
		if sig := done(); sig != nil {
			ended = (&signalError{sig}).failure(o.key)
			return nil, ended
		}
		o.again = run.Again
		ended = s.execute(lease)
		if code, _ := verdict(ended); code == 0 {
			return nil, nil
		}
		if s.failing { // as good as lost: nobody knows how far it came
			ctx, cancel := context.WithTimeout(context.Background(), closeTime)
			defer cancel()
			_ = lease.Release(ctx)
		}
		return nil, ended
	})
	sig := done()
	code, _ := verdict(ended)
	switch {
	case ran && code != 0:
		if errors.Is(err, dibs.ErrUnknown) {
			say(o.stderr, "warning: that %s failed could not be written down: the next one takes it for interrupted: %v", quote(o.key), err)
		}
		return ended
	case ran && err != nil:
		return failf(exitFailed, "the command for %s ended well, but that it is done may not have been written down: %v", quote(o.key), err)
	case ran:
		return ended
	case sig != nil:
		return (&signalError{sig}).failure(o.key)
	case errors.Is(err, dibs.ErrLost):
		return failf(exitLost, "%v; the command was not started", err)
	case err != nil:
		return o.refused(s, err)
	}
	ctx, cancel := asking()
	defer cancel()
	past, err := o.of(s.client, nil).State(ctx)
	if err != nil {
		return o.refused(s, err)
	}
	return o.done(past)
}

// refused turns an error about what is remembered into a failure.
func (o *once) refused(s *session, err error) error {
	switch {
	case errors.Is(err, dibs.ErrMismatch):
		return failf(exitChanged, "%v; nothing was run", err)
	case errors.Is(err, dibs.ErrInterrupted):
		return failf(exitChanged, "%v; nothing was run\nforget it with: dibs once %s --forget", err, shellWord(o.key))
	}
	return o.place.cannot(canRemember, o.key, s.over(err))
}

// done is how a run ends that was done before: well.
func (o *once) done(past dibs.OnceState) error {
	if a, b := past.Request, o.request.value; a != "" && b != "" && a != b {
		return failf(exitChanged, "%v; nothing was run", &dibs.MismatchError{Key: o.key, Request: a, Present: b})
	}
	o.result.Outcome = outcomeSkipped
	if o.quiet {
		return nil
	}
	return failf(0, "skipped: %s\nto have it run again: dibs once %s --forget", o.remembered(past), shellWord(o.key))
}

// remembered says what is known of the key.
func (o *once) remembered(s dibs.OnceState) string {
	how := "was done"
	if s.Status == dibs.Pending {
		how = "was begun"
	}
	return fmt.Sprintf("%s %s at %s by %s", quote(o.key), how, moment(s.Since), printable(s.Note))
}

// forgets forgets that it was done.
func (o *once) forgets(cmd *cobra.Command, args []string) error {
	if cmd.ArgsLenAtDash() >= 0 {
		return usagef("--forget runs nothing; say it without a command: dibs once KEY --forget")
	}
	var err error
	if o.key, err = oneKey(args, "usage: dibs once KEY --forget"); err != nil {
		return err
	}
	ctx, cancel := asking()
	defer cancel()
	q, err := (&listing{store: o.store, verbose: o.verbose}).open(ctx, cmd)
	if err != nil {
		return err
	}
	defer q.close()
	past, err := o.of(q.client, nil).State(ctx)
	if err == nil && past.Status != dibs.Absent {
		err = o.of(q.client, nil).Forget(ctx)
	}
	if err != nil {
		return q.place.cannot(canRemember, o.key, err)
	}
	return o.forgot(cmd.OutOrStdout(), past)
}

func (o *once) forgot(out io.Writer, past dibs.OnceState) (err error) {
	switch past.Status {
	case dibs.Absent:
		_, err = fmt.Fprintf(out, "nothing is remembered of %s\n", quote(o.key))
	case dibs.Pending:
		_, err = fmt.Fprintf(out, "forgot that %s; if that still runs, it is remembered when it is done\n", o.remembered(past))
	default:
		_, err = fmt.Fprintf(out, "forgot that %s\n", o.remembered(past))
	}
	return err
}
