package runner

// NewFeed returns a feed, how to tell it of n things, and how many are kept.
func NewFeed() (f *Feed, tell func(n int), kept func() int) {
	h := newHub()
	r := &Runner{hub: h}
	f, _ = r.Feed("")
	tell = func(n int) {
		for range n {
			h.job("a")
		}
	}
	return f, tell, func() int { return cap(h.ring) }
}
