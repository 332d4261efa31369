package sqlitelock

import (
	sqldriver "database/sql/driver"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A tx is a transaction at a desk: the step that its operations share, and what
// is to be written and told when they are done.
type tx struct {
	step
	s       *Store
	v       *view
	write   bool
	drew    bool  // a number of the mark
	err     error // of SQLite; the transaction fails
	touched []*name
	events  []driver.Event
	news    []news
	losses  []driver.Loss
	alive   map[int64]bool // clients whose life files were tested in this transaction
}

// news is for one waiter or holder: what happened to its row.
type news struct {
	row     *row
	name    string
	granted bool
}

func newTx(d *desk) *tx {
	t := &tx{s: d.s, v: d.view, write: d == d.s.write}
	// Read in the transaction: whatever is judged by this moment was true then,
	// and a caller's asked lies before it.
	t.now, t.domain = d.s.clock.now(), d.s.clock.domain
	t.client, t.proof = d.s.life.owner()
	t.draw = t.next
	t.dead = t.isDead
	t.signal = func(r *row, name string, granted bool) { t.news = append(t.news, news{r, name, granted}) }
	t.lost = t.noteLoss
	if d.s.opts.Journal {
		t.log = func(e driver.Event) { t.events = append(t.events, e) }
	}
	return t
}

// load returns the state of a name, to be changed. nil: the transaction fails.
func (t *tx) load(key string) (*name, error) {
	n, err := t.v.load(key)
	if err != nil {
		t.err = err
		return nil, err
	}
	t.touched = append(t.touched, n)
	return n, nil
}

// each is conn.each. An error fails the transaction.
func (t *tx) each(stmt string, f func([]sqldriver.Value) bool, args ...sqldriver.Value) error {
	err := t.v.c.each(stmt, f, args...)
	if err != nil {
		t.err = err
	}
	return err
}

// next draws from the mark. A mark that can't be read fails the transaction.
func (t *tx) next() int64 {
	m, err := t.v.known()
	if err != nil {
		t.err = err
		return 0
	}
	t.drew = true
	return m.draw()
}

// claim makes sure that a claim or a place may be written: its client's life file
// is there and locked.
func (t *tx) claim() error {
	if t.client != 0 {
		return nil
	}
	if err := t.s.makeLife(); err != nil {
		return err
	}
	t.client, t.proof = t.s.life.owner()
	return nil
}

// isDead tells whether the kernel proves the death of r's client.
func (t *tx) isDead(r *row) bool {
	if r.client == 0 || r.client == t.client || r.domain != t.domain {
		return false
	}
	if alive, tested := t.alive[r.client]; tested {
		return !alive
	}
	if t.alive == nil {
		t.alive = make(map[int64]bool)
	}
	dead := t.s.life.dead(r.client, r.proof)
	t.alive[r.client] = !dead
	return dead
}

// noteLoss remembers what the former holder of r is to be told.
func (t *tx) noteLoss(r *row, name string, err error) {
	if r.client == t.client {
		t.losses = append(t.losses, driver.Loss{Name: name, ID: r.id, Err: err})
		return
	}
	t.news = append(t.news, news{row: &row{client: r.client}})
}

// save writes all that the operations have changed.
func (t *tx) save() error {
	for _, n := range t.touched {
		if err := t.v.save(n); err != nil {
			return err
		}
	}
	if len(t.events) > 0 {
		if err := t.saveEvents(); err != nil {
			return err
		}
	}
	return t.v.saveMeta()
}

func (t *tx) saveEvents() error {
	m, err := t.v.known()
	if err != nil {
		return err
	}
	at := m.tick(t.now, t.s.clock).UnixNano()
	var seq int64
	for _, e := range t.events {
		err := t.v.c.each("addEvent", func(row []sqldriver.Value) bool { seq, _ = row[0].(int64); return true },
			at, int64(e.Kind), e.Name, int64(e.Token), int64(e.Fence), int64(e.Units), int64(e.Capacity),
			e.TookOver, e.Now, e.Note, e.Reason)
		if err != nil {
			return err
		}
		if seq%trimEvery == 0 {
			if err := t.v.c.run("trimEvents", seq-maxEvents); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell brings the news, now that they are true for everybody.
func (t *tx) tell() {
	touched := make(map[int64]bool)
	for _, n := range t.news {
		switch {
		case n.row.client == t.client && t.client != 0:
			t.s.subs.tell(n.row.id, n.signal(t.s))
		case n.row.client != 0 && !touched[n.row.client]:
			touched[n.row.client] = true
			t.s.life.tell(n.row.client)
		}
	}
	for _, l := range t.losses {
		t.s.feeds.tell(l)
	}
	for _, alive := range t.alive {
		if !alive && t.write {
			t.s.look.sawDeath()
			break
		}
	}
}

// signal is what n's waiter hears.
func (n news) signal(s *Store) told {
	g := told{place: uint64(n.row.seq)}
	if n.granted && n.row.state == driver.Handed {
		g.grant, g.until = new(n.row.grant(time.Duration(n.row.until-n.row.since))), n.row.until
	}
	return g
}
