package pglock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

const (
	// handOver is how long a claim handed over lives until it is heard of.
	handOver = 2 * time.Second
	// timeStep is what TTLs are rounded up to.
	timeStep = time.Millisecond
	// schemaVersion is that of schema.sql.
	schemaVersion = 1
	// calls is how many calls that are not on one name run at once, and spares how
	// many connections are kept for them.
	calls, spares = 4, 1
)

var tableFacts = driver.Facts{
	Driver:   "postgres",
	Survival: driver.ByTTL,
	Modes:    driver.Exclusive | driver.Shared | driver.Counted,
	Fencing:  driver.AcrossRestart,
	Ordered:  true,
	HandOver: handOver,
	MinTTL:   100 * time.Millisecond,
	MaxTTL:   365 * 24 * time.Hour,
	Step:     timeStep,
	MaxBatch: 5_000,
}

// TableOptions are a lease table's settings. The zero value is the default.
type TableOptions struct {
	// Journal writes every event to the table events (journal=on). It makes each
	// change a little slower.
	Journal bool
}

// A Table is one client of a lease table. All methods may be called by many
// goroutines at once. Besides a store it is a driver.Watcher, Batcher, LossFeed,
// Lister, Revoker and Journal and has Records.
type Table struct {
	opts    TableOptions
	schema  string // quoted
	channel string // of NOTIFY
	sql     statements
	dial    *dialer
	desk    *desk
	crowded crowded
	subs    *subs
	ear     *ear
	janitor sync.WaitGroup

	life context.Context // ends with Close: it is the store's life
	end  context.CancelFunc

	slots  chan struct{} // one for each call that is not on one name
	spares int           // how many connections are kept for them

	mu     sync.Mutex // guards all below
	closed bool
	spare  []*session // for such calls, and for a worker to begin with
}

var (
	_ driver.Store    = (*Table)(nil)
	_ driver.Watcher  = (*Table)(nil)
	_ driver.Batcher  = (*Table)(nil)
	_ driver.LossFeed = (*Table)(nil)
	_ driver.Lister   = (*Table)(nil)
	_ driver.Revoker  = (*Table)(nil)
	_ driver.Journal  = (*Table)(nil)
	_ driver.Records  = (*Table)(nil)
)

// openTable opens the store and looks at its schema.
func openTable(ctx context.Context, p *params, opts TableOptions) (*Table, error) {
	t := newTable(p, opts)
	err := t.call(ctx, func(ctx context.Context, s *session) error { return checkSchema(ctx, s, t.sql, p.schema) })
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	t.janitor.Go(t.sweep) // until Close
	return t, nil
}

// newTable makes a client that connects to nothing yet.
func newTable(p *params, opts TableOptions) *Table {
	t := &Table{
		opts: opts, schema: p.schema, channel: "dibs." + p.bare,
		sql:  parseStatements(statementsSQL, p.schema),
		dial: tableDialer(p),
		subs: newSubs(), crowded: crowded{names: make(map[string]bool)}, slots: make(chan struct{}, calls), spares: spares,
	}
	t.life, t.end = context.WithCancel(context.Background())
	t.desk = newDesk(t)
	t.ear = newEar(t)
	return t
}

// tableDialer makes sessions whose statements are transactions of their own at
// READ COMMITTED, whatever the database's defaults are: each sees what was
// committed before it began. A foreign transaction that holds a row is waited for
// only a second. Statements look up few rows, each by its key, in tables whose rows
// live briefly: an index scan marks the entries of dead rows, which a bitmap scan
// visits for ever, and the planner knows nothing of either.
func tableDialer(p *params) *dialer {
	return &dialer{
		conn: p.conn, pooler: p.pooler, pooled: new(atomic.Bool),
		settings: `SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
			SET search_path = pg_catalog; SET lock_timeout = '1s'; SET statement_timeout = '20s';
			SET idle_session_timeout = 0; SET synchronous_commit = on;
			SET jit = off; SET plan_cache_mode = force_generic_plan; SET client_encoding = 'UTF8';
			SET enable_bitmapscan = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`,
		local: `SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('lock_timeout', '1s', true),
			pg_catalog.set_config('statement_timeout', '20s', true), pg_catalog.set_config('enable_bitmapscan', 'off', true),
			pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('enable_hashjoin', 'off', true),
			pg_catalog.set_config('enable_mergejoin', 'off', true)`,
	}
}

func checkSchema(ctx context.Context, s *session, sql statements, schema string) error {
	version := 0
	err := s.run(ctx, sql.named("schema"), nil, func(rows pgx.Rows) error { return rows.Scan(&version) })
	switch {
	case err != nil:
		return err
	case version != schemaVersion:
		return driver.Rejectedf("", "postgres: the schema %s has version %d, and this dibs knows %d: upgrade whichever is older", schema, version, schemaVersion)
	}
	return nil
}

// Facts tells what the store promises.
func (t *Table) Facts() driver.Facts { return tableFacts }

// Acquire asks once for c.
func (t *Table) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(tableFacts)
	if err != nil {
		return driver.Grant{}, err
	}
	g := new(driver.Grant) // its own, because the caller may leave before it is written
	err = t.desk.do(ctx, c.Name,
		func(n *name) (err error) {
			if *g, err = n.acquire(c); errors.Is(err, driver.ErrHeld) && c.Patience > 0 {
				t.subs.refused(c, n.now)
			}
			return err
		},
		t.shortcut(func() []shortcut { return t.takeFree(c, g) }))
	t.subs.note(c, err == nil)
	if err != nil {
		return driver.Grant{}, err
	}
	return *g, nil
}

// shortcut is f, unless the journal is to hear of everything.
func (t *Table) shortcut(f func() []shortcut) func() []shortcut {
	if t.opts.Journal {
		return nil
	}
	return f
}

// AcquireAll asks once for all of cs: it grants all or none.
func (t *Table) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	cs = slices.Clone(cs)
	names := make(map[string]bool)
	for i, c := range cs {
		c, err := c.Check(tableFacts)
		if err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, driver.Rejectedf(c.Name, "the name is twice in one batch")
		}
		names[c.Name] = true
		c.Patience = 0
		cs[i] = c
	}
	var gs []driver.Grant
	err := t.call(ctx, func(ctx context.Context, s *session) error {
		var err error
		gs, err = t.acquireAll(ctx, s, cs)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range cs {
		t.subs.note(c, true)
	}
	return gs, nil
}

func (t *Table) acquireAll(ctx context.Context, s *session, cs []driver.Claim) ([]driver.Grant, error) {
	w := &writer{s: t, session: s}
	keys := make([]string, len(cs))
	for i, c := range cs {
		keys[i] = c.Name
	}
	guarded := make(map[string]map[int64]bool)
	for range maxRounds {
		names, err := w.load(ctx, keys)
		if contended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var steps []*name
		var gs []driver.Grant
		var refusal error
		for _, c := range cs {
			n := names[c.Name]
			n.guarded, n.journal = guarded[c.Name], t.opts.Journal
			if refusal = n.judge(c); refusal != nil {
				break // what judge has brought up to now is not written: the next one does it again
			}
			gs = append(gs, n.take(c))
			steps = append(steps, n)
		}
		if refusal != nil {
			return nil, refusal
		}
		written, err := w.write(ctx, steps, guarded, true)
		switch {
		case contended(err):
		case w.untold(steps, err):
			w.mute = true
		case err != nil:
			return nil, err
		case len(written) == len(steps):
			for _, n := range steps {
				t.tellLocal(n)
			}
			return gs, nil
		}
	}
	return nil, errBusy
}

// Renew proves claims and refreshes places.
func (t *Table) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > tableFacts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), tableFacts.MaxBatch)
	}
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	proofs := make([]driver.Proof, len(cs))
	got := make([]*driver.Proof, len(cs)) // written by the desk
	ops := make([]*op, len(cs))
	var todo []*op
	for i, c := range cs {
		c, err := c.Check(tableFacts)
		if err != nil {
			proofs[i].Err = err
			continue
		}
		got[i] = new(driver.Proof)
		var short *renewal
		if c.Token != 0 {
			short = &renewal{c, got[i]}
		}
		ops[i] = &op{name: c.Name, renew: short, run: func(n *name) error {
			*got[i] = n.renew(c)
			if errors.Is(got[i].Err, driver.ErrHeld) {
				t.subs.refused(c, n.now)
			}
			return nil
		}}
		todo = append(todo, ops[i])
	}
	if err := t.desk.submit(todo...); err != nil {
		return nil, err
	}
	var failed error // of the whole call: of which claim does not matter
	for i, o := range ops {
		if o == nil {
			continue
		}
		if err := t.desk.await(ctx, o); err != nil {
			proofs[i].Err = err
			if !driver.Certain(err) {
				failed = err
			}
			continue
		}
		proofs[i] = *got[i]
		t.subs.note(cs[i], proofs[i].Err == nil)
	}
	return proofs, failed
}

// Release gives back c, or its place in line.
func (t *Table) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	err := t.desk.do(ctx, c.Name,
		func(n *name) error { return n.release(c) },
		t.shortcut(func() []shortcut { return t.handOn(c) }))
	t.subs.note(c, false)
	t.subs.forget(c)
	return err
}

// Revoke takes the claim with r.Token away.
func (t *Table) Revoke(ctx context.Context, r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	return t.desk.do(ctx, r.Name, func(n *name) error { return n.revoke(r) }, nil)
}

// Close frees the store's connections and goroutines. Claims that were not
// released end by their TTL.
func (t *Table) Close() error {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if closed {
		return nil
	}
	t.end()
	t.desk.close()
	t.ear.close()
	t.subs.close()
	t.janitor.Wait()
	t.mu.Lock()
	spare := t.spare
	t.spare = nil
	t.mu.Unlock()
	for _, s := range spare {
		s.bye()
	}
	return nil
}
