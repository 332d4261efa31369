package cli

import (
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
	status := freeKey(r.key)
	if there {
		ctx, cancel := asking()
		defer cancel()
		all, err := statuses(ctx, p, r.key, func(k string) bool { return k == r.key })
		if err != nil {
			return err
		}
		if len(all) > 0 {
			status = all[0]
		}
	}
	held := r.obstacle(status)
	var err error
	text := "would run: " + commandLine(r.argv)
	switch {
	case held != nil && r.wait.wanted:
		text = fmt.Sprintf("would wait, %d in line: %s", len(status.Waiters)+1, inTheWay(time.Now(), held))
	case held != nil:
		text = "would skip: " + inTheWay(time.Now(), held)
		err = &failure{code: r.conflict.value}
	}
	if _, werr := fmt.Fprintln(out, printable(text)); werr != nil {
		return werr
	}
	return err
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
