package redislock

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// owed is what nodes still have to be told: a request that was sent to a node and
// never answered may yet be applied there, so after the claim was given back that
// node is told so, again and again, until the claim's TTL has passed since the
// send (law 38). What is applied later than that ends by its own TTL.
type owed struct {
	s *Redlock

	mu       sync.Mutex // guards what follows
	attempts map[subscriber]*attempt
	due      map[*member][]*debt
	closed   bool
}

// An attempt is what may still be under way for a claim.
type attempt struct {
	claim   driver.Claim
	number  uint64 // of the newest request
	token   uint64 // 0: not granted yet
	pending int    // requests under way
	unheard []doubtful
	gone    bool // it was given back
}

// doubtful is a request that a node may still apply.
type doubtful struct {
	node  *member
	until time.Time
}

// A debt is a claim that a node is to be told to let go.
type debt struct {
	claim       driver.Claim
	number      uint64 // with token 0: requests with larger numbers are not meant
	next, until time.Time
	pause       time.Duration
}

const (
	mostDebts  = 4096 // a node's; older ones are left to their TTLs
	debtsAtOne = 100  // how many one request settles
)

func newOwed(s *Redlock) *owed {
	return &owed{s: s, attempts: make(map[subscriber]*attempt), due: make(map[*member][]*debt)}
}

// asked notes that n requests for c are about to be sent, which may be applied
// until a time. What it returns is to be called as each of them ends.
func (o *owed) asked(c driver.Claim, number uint64, n int, until time.Time) func(returned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := subscriber{c.Name, c.ID}
	a := o.attempts[key]
	if a == nil {
		a = &attempt{claim: c}
		a.claim.Token = 0 // what comes late may have any
		o.attempts[key] = a
	}
	a.number, a.token, a.gone = number, 0, false
	a.pending += n
	return func(r returned) {
		o.mu.Lock()
		defer o.mu.Unlock()
		a.pending--
		switch {
		case a.gone && (unheard(r.err) || r.err == nil && r.late):
			// A node runs what it is asked one after the other, and was told after this
			// that the claim is given back; but what it runs late comes after that.
			o.addLocked(r.node, a.claim, a.number, until)
		case unheard(r.err):
			a.unheard = append(a.unheard, doubtful{r.node, until})
		}
		o.tidyLocked(key, a)
	}
}

// filled is asked of requests that give a claim that is granted to more nodes.
func (o *owed) filled(c driver.Claim, number uint64, n int, until time.Time) func(returned) {
	each := o.asked(c, number, n, until)
	o.granted(c, c.Token)
	return each
}

// tidyLocked forgets an attempt of which nothing can come any more.
func (o *owed) tidyLocked(key subscriber, a *attempt) {
	now := time.Now()
	a.unheard = slices.DeleteFunc(a.unheard, func(d doubtful) bool { return now.After(d.until) })
	if a.pending == 0 && len(a.unheard) == 0 && o.attempts[key] == a {
		delete(o.attempts, key)
	}
}

// granted notes that c was granted under token.
func (o *owed) granted(c driver.Claim, token uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.attempts[subscriber{c.Name, c.ID}]; a != nil {
		a.token = token
	}
}

// gone notes that c is given back, under its token if it has one: nodes that did
// not answer are told. An attempt with the same ID that came later is not meant.
func (o *owed) gone(c driver.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := subscriber{c.Name, c.ID}
	a := o.attempts[key]
	if a == nil || c.Token != 0 && c.Token != a.token {
		return
	}
	a.gone = true
	for _, d := range a.unheard {
		o.addLocked(d.node, a.claim, a.number, d.until)
	}
	a.unheard = nil
	o.tidyLocked(key, a)
}

// add has n told to let go of c until a time.
func (o *owed) add(n *member, c driver.Claim, number uint64, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(n, c, number, until)
}

func (o *owed) addLocked(n *member, c driver.Claim, number uint64, until time.Time) {
	now := time.Now()
	if o.closed || now.After(until) {
		return
	}
	d := &debt{claim: c, number: number, next: now, until: until, pause: 20 * time.Millisecond}
	d.claim.Keep, d.claim.Note = 0, ""
	all, serving := o.due[n]
	if len(all) == mostDebts {
		all = all[1:]
	}
	o.due[n] = append(all, d)
	if !serving {
		o.s.background(func() { o.serve(n) }) // ends when nothing is due, or with the store
	}
}

// serve tells n what is due, until nothing is any more.
func (o *owed) serve(n *member) {
	for {
		now := time.Now()
		var batch []*debt
		wait := time.Hour
		o.mu.Lock()
		all := slices.DeleteFunc(o.due[n], func(d *debt) bool { return now.After(d.until) && d.pause == 0 })
		for _, d := range all {
			if left := d.next.Sub(now); left > 0 {
				wait = min(wait, left)
			} else if len(batch) < debtsAtOne {
				batch = append(batch, d)
			} else {
				wait = 0
			}
		}
		if len(all) == 0 || o.closed {
			delete(o.due, n)
			o.mu.Unlock()
			return
		}
		o.due[n] = all
		o.mu.Unlock()
		if len(batch) > 0 {
			o.settle(n, batch)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-o.s.life.Done():
			timer.Stop()
		}
	}
}

// settle tells n of some debts once, and schedules the next time: the last is when
// nothing can be applied any more.
func (o *owed) settle(n *member, batch []*debt) {
	var names []string
	args := []string{strconv.Itoa(len(batch))}
	how := make([]byte, 0, len(batch))
	for _, d := range batch {
		who, what := o.s.packQuorum(d.claim, d.claim.Token, d.number)
		names, args = append(names, d.claim.Name), append(args, who, what)
		if d.claim.Token == 0 {
			how = append(how, 'f')
		} else {
			how = append(how, 's') // by its token, which the node may not have heard of
		}
	}
	p := o.s.ask([]*member{n}, 2*time.Second, nil, giveScript, o.s.keys.of(names...), append(args, string(how)))
	_, _ = p.next(o.s.life)
	p.end()
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range batch {
		if !now.Before(d.until) {
			d.pause = 0 // that was the last
			continue
		}
		d.next = now.Add(d.pause)
		if d.next.After(d.until) {
			d.next = d.until
		}
		d.pause = min(2*d.pause, max(d.claim.TTL/4, 20*time.Millisecond))
	}
}

// close ends it: what is owed is left to its TTL.
func (o *owed) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}
