package book

import (
	"context"
	"slices"
	"time"
)

// An Instance is what one instance tells the others about itself.
type Instance struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Pid     int       `json:"pid"`
	Version string    `json:"version"`
	Listen  string    `json:"listen,omitempty"`
	Started time.Time `json:"started_at"`
	Beat    uint64    `json:"beat"` // grows while it lives
	Left    bool      `json:"left,omitempty"`
	Active  []Active  `json:"active"` // what it is running, or waits to run
	Queues  []string  `json:"queues"` // the jobs whose queues it empties
}

// An Active is a run in an instance's hands.
type Active struct {
	Run   string `json:"run"`
	Job   string `json:"job"`
	Lock  string `json:"lock"`
	Token uint64 `json:"token,string"` // 0: it waits for the lock

	// Tick is set for one that the instance is about to decide, and to make that
	// run of.
	Tick *time.Time `json:"tick,omitempty"`
}

// instances names those that are there, or were until lately.
type instances struct {
	IDs []string `json:"ids"`
}

// Join adds an instance to those that are there.
func (b *Book) Join(ctx context.Context, id string) error {
	return edit(ctx, b, "instances", stamp{}, func(all *instances, _ bool, _ time.Time) (time.Duration, error) {
		if slices.Contains(all.IDs, id) {
			return 0, errSame
		}
		all.IDs = append(all.IDs, id)
		return forever, nil
	})
}

// Forget removes an instance, after all that it left behind was seen to.
func (b *Book) Forget(ctx context.Context, id string) error {
	err := edit(ctx, b, "instances", stamp{}, func(all *instances, _ bool, _ time.Time) (time.Duration, error) {
		i := slices.Index(all.IDs, id)
		if i < 0 {
			return 0, errSame
		}
		all.IDs = slices.Delete(all.IDs, i, i+1)
		return forever, nil
	})
	if err != nil {
		return err
	}
	for _, key := range []string{"instance/" + id, "orders/" + id} {
		err := edit(ctx, b, key, stamp{}, func(_ *map[string]any, found bool, _ time.Time) (time.Duration, error) {
			if !found {
				return 0, errSame
			}
			return 0, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Beat writes what an instance says about itself. It alone does. It returns the
// store's now.
func (b *Book) Beat(ctx context.Context, in Instance) (at time.Time, err error) {
	err = edit(ctx, b, "instance/"+in.ID, stamp{}, func(v *Instance, _ bool, now time.Time) (time.Duration, error) {
		*v, at = in, now
		return forever, nil
	})
	return at, err
}

// Instances returns those that are there, or were until lately.
func (b *Book) Instances(ctx context.Context) ([]Instance, error) {
	var all instances
	if _, _, err := b.load(ctx, "instances", &all); err != nil {
		return nil, err
	}
	list := make([]Instance, 0, len(all.IDs))
	for _, id := range all.IDs {
		in := Instance{ID: id}
		if _, _, err := b.load(ctx, "instance/"+id, &in); err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// orders are what others want of an instance.
type orders struct {
	Cancel map[string]string `json:"cancel"` // runs, and who wants it
}

// Order asks an instance to cancel a run.
func (b *Book) Order(ctx context.Context, instance, run, by string) error {
	return edit(ctx, b, "orders/"+instance, stamp{}, func(o *orders, _ bool, _ time.Time) (time.Duration, error) {
		if _, there := o.Cancel[run]; there {
			return 0, errSame
		}
		if o.Cancel == nil {
			o.Cancel = make(map[string]string)
		}
		o.Cancel[run] = by
		return 24 * time.Hour, nil
	})
}

// Orders takes what others want of an instance.
func (b *Book) Orders(ctx context.Context, instance string) (cancel map[string]string, err error) {
	r, _, err := b.get(ctx, "orders/"+instance)
	if err != nil || r.Version == 0 {
		return nil, err
	}
	err = edit(ctx, b, "orders/"+instance, stamp{}, func(o *orders, found bool, _ time.Time) (time.Duration, error) {
		if !found {
			return 0, errSame // taken, and the answer was lost
		}
		cancel = o.Cancel
		return 0, nil
	})
	return cancel, err
}
