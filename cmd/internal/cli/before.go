package cli

import (
	"math/rand/v2"
	"os"
	"runtime"
	"time"
)

// scatter sleeps for the --jitter.
func (r *runner) scatter(in *inbox) error {
	if r.jitter.Duration == 0 {
		return nil
	}
	d := rand.N(r.jitter.Duration)
	r.log.Debug("sleeping before the lock is asked for", "jitter", d)
	r.events.add(event{Event: "jitter", Sleep: d.Milliseconds()})
	return r.sleep(in, d)
}

// knowsParent tells whether this system tells of the end of a parent.
const knowsParent = runtime.GOOS != "windows"

// parentPoll is how often the parent is looked for: nothing tells of its end but
// that somebody else is the parent.
const parentPoll = 100 * time.Millisecond

// followParent closes r.parent when the process that started dibs has ended, if
// that is asked for. It does so until stop is called.
func (r *runner) followParent() (stop func()) {
	if !r.dieWithParent {
		return func() {}
	}
	r.parent = make(chan struct{})
	quit := make(chan struct{})
	go func() { // ends when stop closes quit
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for os.Getppid() == r.ppid {
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
		close(r.parent)
	}()
	return func() { close(quit) }
}
