package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// A question is an open store that a command asks something.
type question struct {
	place  place
	store  driver.Store
	client *dibs.Client // closes the store
}

// open opens the store that the flags choose. The caller closes the question.
func (o *listing) open(ctx context.Context, cmd *cobra.Command) (*question, error) {
	p, err := choose(o.store)
	if err != nil {
		return nil, err
	}
	if o.verbose {
		say(cmd.ErrOrStderr(), "store: %s", p)
	}
	open := p.open
	switch {
	case p.absent() && !o.lasts:
		if open = nothing; o.verbose || p.from != theDefault {
			say(cmd.ErrOrStderr(), "there is no file %s yet: nobody holds anything in it", p.file())
		}
	case o.past:
		open = p.openToRead
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	client, err := p.client(store, nil)
	if err != nil {
		return nil, err
	}
	return &question{place: p, store: store, client: client}, nil
}

func (q *question) close() { closeClient(q.client, logger(io.Discard, false)) }

// key reads who holds key and who waits for it.
func (q *question) key(ctx context.Context, key string) (keyStatus, error) {
	return oneStatus(ctx, q.place, q.client, key)
}

// asking bounds a question that nobody ends otherwise.
func asking() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), listTime)
}

// oneKey returns the key that is the only argument.
func oneKey(args []string, usage string) (string, error) {
	if len(args) != 1 {
		return "", usagef("want one key, and not %d; %s", len(args), usage)
	}
	return args[0], checkKey(args[0])
}

// pattern reads the pattern that may be the only argument.
func pattern(args []string) (*glob, error) {
	switch len(args) {
	case 0:
		return newGlob("")
	case 1:
		return newGlob(args[0])
	}
	return nil, usagef("one pattern, and not %d: a shell expands a * that is not in quotes", len(args))
}

// utc is a moment as JSON has it: RFC 3339 in UTC, to the millisecond.
func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// moment is a moment as people read it: in this host's zone, to the second.
func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
