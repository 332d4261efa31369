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
	r.outer = outerKeys(os.Getenv(keysVar))
	if err := nested(r.outer, r.key, identity(p.url)); err != nil {
		return err
	}
	r.place = p
	status := freeKey(r.key)
	if there {
		var err error
		if status, err = r.foresee(); err != nil {
			return err
		}
	}
	held := r.obstacle(status)
	var err error
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

// foresee asks who is at the key, of a store that suits the run.
func (r *runner) foresee() (keyStatus, error) {
	ctx, cancel := asking()
	defer cancel()
	store, err := r.place.open(ctx)
	if err != nil {
		return keyStatus{}, err
	}
	client, err := r.place.client(store, nil)
	if err != nil {
		return keyStatus{}, err
	}
	defer closeClient(client, logger(io.Discard, false))
	if err := r.suits(store.Facts()); err != nil {
		return keyStatus{}, err
	}
	return oneStatus(ctx, r.place, client, r.key)
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
			return &dibs.HeldError{Name: r.key, Holder: &c.holder}
		}
	}
	if len(k.Waiters) > 0 {
		return &dibs.HeldError{Name: r.key, Reserved: true}
	}
	return nil
}
