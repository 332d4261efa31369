package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// rehearse says what a run would do now, without locking or running anything. It
// makes no store that is not there.
func (r *runner) rehearse(out io.Writer) error {
	p, there := existing(r.store)
	if there || r.store.given || os.Getenv("DIBS_STORE_URL") != "" || os.Getenv("DIBS_STORE_URL_FILE") != "" {
		var err error
		if p, err = choose(r.store); err != nil {
			return err
		}
	}
	r.place = p
	if err := r.nested(); err != nil {
		return err
	}
	var status keyStatus
	var held *dibs.HeldError
	var err error
	if there {
		if status, held, err = r.foresee(); err != nil {
			return err
		}
	}
	text := "would run: " + commandLine(r.argv)
	switch {
	case held != nil && r.wait.wanted:
		text = fmt.Sprintf("would wait, %d in line: %s", len(status.Waiters)+1, inTheWay(time.Now(), held))
	case held != nil:
		now := time.Now()
		text = "would skip: " + cmp.Or(full(now, status, r.slots.value), inTheWay(now, held))
		err = &failure{code: r.conflict.value}
	}
	if _, werr := fmt.Fprintln(out, printable(text)); werr != nil {
		return werr
	}
	return err
}

// foresee asks who is at the first key that is not free, of a store that suits the
// run, and who is in the way there.
func (r *runner) foresee() (k keyStatus, held *dibs.HeldError, err error) {
	ctx, cancel := asking()
	defer cancel()
	store, err := r.place.open(ctx)
	if err != nil {
		return k, nil, err
	}
	client, err := r.place.client(store, nil)
	if err != nil {
		return k, nil, err
	}
	defer closeClient(client, logger(io.Discard, false))
	if err := r.suits(store.Facts()); err != nil {
		return k, nil, err
	}
	for _, name := range r.names {
		if k, err = oneStatus(ctx, r.place, client, name); err != nil {
			return k, nil, err
		}
		if err := nestedIn(r.outer, k); err != nil {
			return k, nil, err
		}
		if held = r.obstacle(k); held != nil {
			break
		}
	}
	return k, held, nil
}

// obstacle returns who would be in the way now; nil: nobody.
func (r *runner) obstacle(k keyStatus) *dibs.HeldError {
	taken := 1
	for _, c := range k.Holders {
		taken += c.Units
		switch mode := c.holder.Mode(); {
		case r.shared && mode == driver.Shared:
		case r.slots.value > 1 && mode == driver.Counted && taken <= min(r.slots.value, c.Of):
		default:
			return &dibs.HeldError{Name: k.Key, Holder: &c.holder}
		}
	}
	if len(k.Waiters) > 0 {
		return &dibs.HeldError{Name: k.Key, Reserved: true}
	}
	return nil
}
