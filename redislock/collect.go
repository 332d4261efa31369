package redislock

import "time"

// collect hears what n servers answer that were asked side by side, until hear says
// that it has heard enough. One that is slow, as it may be when it is dialled for the
// first time, is waited for as long as its call lasts; but not for more than grace
// when hear has found another's answer good.
func collect[A any](answers <-chan A, n int, grace time.Duration, hear func(A) (good, enough bool)) {
	var late <-chan time.Time
	for range n {
		select {
		case a := <-answers:
			good, enough := hear(a)
			if enough {
				return
			}
			if good && late == nil {
				late = time.After(grace)
			}
		case <-late:
			return
		}
	}
}
