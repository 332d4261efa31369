package book

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A State is where a run stands.
type State string

// The states of a run.
const (
	Queued    State = "queued"    // accepted; any instance may start it
	Waiting   State = "waiting"   // for the lock, or for its next attempt
	Running   State = "running"   //
	Succeeded State = "succeeded" //
	Failed    State = "failed"    //
	Timeout   State = "timeout"   // its time was over
	Lost      State = "lost"      // its instance died, or lost the lock
	Cancelled State = "cancelled" // by a person, or before it began
	Skipped   State = "skipped"   // another was in the way; not a failure
	Missed    State = "missed"    // no instance was there at its time
)

// States lists them all.
var States = []State{Queued, Waiting, Running, Succeeded, Failed, Timeout, Lost, Cancelled, Skipped, Missed}

// Ended tells whether a run in this state is over.
func (s State) Ended() bool { return s != Queued && s != Waiting && s != Running }

// A Run is one run of a job, from the moment when it was accepted.
type Run struct {
	ID        string            `json:"id"`
	Job       string            `json:"job"`
	State     State             `json:"state"`
	Reason    string            `json:"reason,omitempty"` // why it ended so
	Holder    string            `json:"holder,omitempty"` // skipped: who was in the way
	Trigger   string            `json:"trigger"`          // schedule, http, cli or retry
	By        string            `json:"by,omitempty"`     // who asked for it
	Params    map[string]string `json:"params,omitempty"`
	Tick      *time.Time        `json:"scheduled_at,omitempty"`
	Count     int               `json:"ticks,omitempty"` // missed: how many ticks, of which scheduled_at is the last
	Created   time.Time         `json:"created_at"`
	Started   *time.Time        `json:"started_at,omitempty"`
	Ended     *time.Time        `json:"ended_at,omitempty"`
	Attempt   int               `json:"attempt"`
	Lock      string            `json:"lock,omitempty"`
	Fence     uint64            `json:"fence,string"`
	Token     uint64            `json:"token,string"`
	Instance  string            `json:"instance,omitempty"`
	Trace     string            `json:"traceparent,omitempty"`
	Exit      *int              `json:"exit_code,omitempty"`
	Status    int               `json:"http_status,omitempty"`
	RetryOf   string            `json:"retry_of,omitempty"`
	RetriedAs string            `json:"retried_as,omitempty"`
	Keep      time.Duration     `json:"keep"` // how long it is kept
}

// NewID returns a UUIDv7.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// runKey is the key of a run; an id that is none has no key.
func runKey(id string) (string, error) {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return "", ErrNone
	}
	for i := range u {
		u[i] = ^u[i]
	}
	return "run/" + hex.EncodeToString(u[:]), nil
}

// Run returns the run of that id, or ErrNone.
func (b *Book) Run(ctx context.Context, id string) (Run, error) {
	var r Run
	key, err := runKey(id)
	if err != nil {
		return r, err
	}
	found, _, err := b.load(ctx, key, &r)
	if err == nil && !found {
		err = ErrNone
	}
	return r, err
}

// ErrTaken: the run is there already, or is another's by now.
var ErrTaken = errors.New("another instance has it")

// Add writes a new run. ErrTaken: there is one of that id, and not this.
func (b *Book) Add(ctx context.Context, r Run) error {
	key, err := runKey(r.ID)
	if err != nil {
		return err
	}
	return edit(ctx, b, key, stamp{r.Lock, r.Token}.orNone(), func(old *Run, found bool, _ time.Time) (time.Duration, error) {
		switch {
		case found && old.Created.Equal(r.Created) && old.State == r.State && old.Instance == r.Instance:
			return 0, errSame
		case found:
			return 0, ErrTaken
		}
		*old = r
		return r.Keep, nil
	})
}

// orNone is no stamp if there is no token.
func (s stamp) orNone() stamp {
	if s.token == 0 {
		return stamp{}
	}
	return s
}

// Change changes a run as f says, which sees it as it is and may be asked again:
// also about what it did itself. It returns the run as it became.
func (b *Book) Change(ctx context.Context, id string, f func(r *Run) error) (Run, error) {
	return b.change(ctx, id, stamp{}, f)
}

// ChangeUnder is Change with the token of the lock under which it is done: a run
// that has seen a larger one refuses it (driver.ErrFenced).
func (b *Book) ChangeUnder(ctx context.Context, id, lock string, token uint64, f func(r *Run) error) (Run, error) {
	return b.change(ctx, id, stamp{lock, token}.orNone(), f)
}

func (b *Book) change(ctx context.Context, id string, s stamp, f func(r *Run) error) (Run, error) {
	var now Run
	key, err := runKey(id)
	if err != nil {
		return now, err
	}
	err = edit(ctx, b, key, s, func(r *Run, found bool, _ time.Time) (time.Duration, error) {
		if !found {
			return 0, ErrNone
		}
		before, _ := json.Marshal(r)
		if err := f(r); err != nil {
			now = *r
			return 0, err
		}
		now = *r
		if after, _ := json.Marshal(r); string(after) == string(before) {
			return 0, errSame
		}
		return r.Keep, nil
	})
	return now, err
}

// Remove forgets a run and its log.
func (b *Book) Remove(ctx context.Context, id string) error {
	key, err := runKey(id)
	if err != nil {
		return err
	}
	drop := func(_ *json.RawMessage, found bool, _ time.Time) (time.Duration, error) {
		if !found {
			return 0, errSame
		}
		return 0, nil
	}
	return errors.Join(edit(ctx, b, key, stamp{}, drop), b.dropLog(ctx, id))
}

// Runs yields the runs of all jobs, the newest first. The store may have to look
// at all its keys.
func (b *Book) Runs(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for rec, err := range b.records.ListRecords(ctx, b.prefix+"run/") {
			var r Run
			if err == nil {
				err = json.Unmarshal(rec.Value, &r)
			}
			if err != nil {
				yield(r, fmt.Errorf("listing the runs: %w", err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// RunsOf yields the runs of some ids, in their order, without those that are no
// more.
func (b *Book) RunsOf(ctx context.Context, ids []string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for id := range slices.Values(ids) {
			r, err := b.Run(ctx, id)
			if errors.Is(err, ErrNone) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
