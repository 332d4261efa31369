package pglock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs/driver"
)

func init() { driver.Register("pgadvisory", openAdvisoryURL) }

const (
	// advisoryTTL is the longest TTL: a holder that is cut off must know its loss
	// before the server gives its session up (deadAfter).
	advisoryTTL = 45 * time.Second
	// deadAfter is how long a server waits for a silent session. It is set on the
	// session itself, so that ours is always the shorter clock.
	deadAfter = time.Minute
	// maxSessions is how many sessions a store may have.
	maxSessions = 4
)

var advisoryFacts = driver.Facts{
	Driver:   "pgadvisory",
	Survival: driver.BySession,
	Modes:    driver.Exclusive | driver.Shared,
	Fencing:  driver.AcrossRestart,
	MinTTL:   100 * time.Millisecond,
	MaxTTL:   advisoryTTL,
	Step:     timeStep,
	MaxBatch: 10_000,
	Waives: []driver.Waiver{
		{Law: 8, Why: "a name becomes a key of 64 bits (32 with hash=hashtext): two names whose keys collide exclude each other"},
		{Law: 12, Why: "the readers between two writers have one fence, also if the name was free for a while between them"},
		{Law: 17, Why: "a session ends at once with its process or connection, but one that is cut off or frozen only after a minute, and one whose server process is frozen not before that goes on"},
		{Law: 18, Why: "a lock of PostgreSQL ends with its unlock or its session, so nothing keeps it (Keep)"},
		{Law: 21, Why: "a lock can't change its mode in one step that others would not see"},
		{Law: 22, Why: "only its holder can free a lock, and is asked to: one that is frozen or cut off, or is another program, does not answer, and the order fails; TookOver is not told"},
		{Law: 23, Why: "sessions never block, so there is no line: who asks first after a release gets in"},
		{Law: 24, Why: "there is no line"},
		{Law: 25, Why: "there is no line"},
		{Law: 26, Why: "there is no line"},
		{Law: 27, Why: "there is no line"},
		{Law: 29, Why: "a signal only says that a key was given back; nothing is handed over"},
		{Law: 49, Why: "a lock of PostgreSQL ends with its unlock or its session, so nothing keeps it (Delay)"},
	},
}

// advisoryOptions are what an advisory store's URL says.
type advisoryOptions struct {
	fenced    bool
	hash      string
	namespace string
	sessions  int
}

// An Advisory is one client of the advisory locks of a database. Many locks share
// few sessions, which never block: a lock is tried for, again and again. All
// methods may be called by many goroutines at once. Besides a store it is a
// driver.Watcher, a LossFeed, and a Lister and Revoker as far as holders answer.
type Advisory struct {
	opts     advisoryOptions
	facts    driver.Facts
	schema   string
	channel  string
	flag     []byte // the key that says that somebody waits
	sql      statements
	dial     *dialer
	sessions []*warden
	subs     *subs
	clerk    *clerk
	patience time.Duration // with those who are asked who holds

	life context.Context // ends with Close: it is the store's life
	end  context.CancelFunc
	once sync.Once

	mu      sync.Mutex // guards all below
	names   map[string]key
	waiting map[key]map[chan driver.Signal]bool
	serial  uint64 // the newest token, without fences
}

var (
	_ driver.Store    = (*Advisory)(nil)
	_ driver.Watcher  = (*Advisory)(nil)
	_ driver.LossFeed = (*Advisory)(nil)
	_ driver.Lister   = (*Advisory)(nil)
	_ driver.Revoker  = (*Advisory)(nil)
)

// openAdvisoryURL opens pgadvisory://user@host/database.
func openAdvisoryURL(ctx context.Context, u *url.URL) (driver.Store, error) {
	opts := advisoryOptions{hash: hashSHA}
	create, raw, sessions := false, false, ""
	p, err := readURL(u, func(p *driver.Params) {
		opts.fenced = p.Choice("fence", "on", "off") == "on"
		opts.hash = p.Choice("hash", hashSHA, hashText)
		opts.namespace = p.String("namespace", "")
		raw = p.Choice("key", "hash", keyRaw) == keyRaw
		create = p.Choice("create", "off", "on") == "on"
		sessions = p.String("sessions", "1")
	})
	if err != nil {
		return nil, err
	}
	if raw {
		opts.hash = keyRaw
	}
	if opts.sessions, err = strconv.Atoi(sessions); err != nil || opts.sessions < 1 || opts.sessions > maxSessions {
		return nil, driver.Rejectedf("", "the store's URL: sessions=%s: want 1 to %d", sessions, maxSessions)
	}
	if create && opts.fenced {
		if _, err := initSchema(ctx, p); err != nil {
			return nil, err
		}
	}
	a := newAdvisory(p, opts)
	if err := a.check(ctx); err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

func newAdvisory(p *params, opts advisoryOptions) *Advisory {
	a := &Advisory{
		opts: opts, facts: advisoryFacts, schema: p.schema, channel: "dibs.keys." + p.bare,
		sql:      parseStatements(advisorySQL, p.schema),
		dial:     advisoryDialer(p),
		subs:     newSubs(),
		patience: answerWait,
		flag:     keyed{key: shaKey("\x00waits", p.bare)}.text(),
		names:    make(map[string]key), waiting: make(map[key]map[chan driver.Signal]bool),
	}
	if !opts.fenced {
		a.facts.Fencing = driver.NoFencing
		a.facts.Waives = append(slices.Clone(a.facts.Waives),
			driver.Waiver{Law: 11, Why: "with fence=off a token is only this client's own number"},
			driver.Waiver{Law: 12, Why: "with fence=off there are no fences"})
	}
	a.life, a.end = context.WithCancel(context.Background())
	a.clerk = newClerk(a)
	for i := range opts.sessions {
		a.sessions = append(a.sessions, newWarden(a, i == 0))
	}
	return a
}

// advisoryDialer makes sessions that hold locks. Whatever the database's defaults
// are, the server gives a silent one up after deadAfter and not before; nothing on
// it waits for a foreign row for long; and no commit waits for a standby: neither
// time-out of PostgreSQL would end that, and a token only has to survive here.
func advisoryDialer(p *params) *dialer {
	return &dialer{
		conn: p.conn, pooler: p.pooler, pooled: new(atomic.Bool),
		settings: fmt.Sprintf(`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
			SET search_path = pg_catalog; SET lock_timeout = '100ms'; SET statement_timeout = '5s';
			SET idle_in_transaction_session_timeout = '10s'; SET synchronous_commit = local; SET client_encoding = 'UTF8';
			SET idle_session_timeout = %d; SET tcp_user_timeout = %[1]d;
			SET jit = off; SET plan_cache_mode = force_generic_plan; SET tcp_keepalives_idle = %d; SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = 3`,
			deadAfter.Milliseconds(), int((deadAfter / 2).Seconds()), int((deadAfter / 6).Seconds())),
	}
}

// check connects for the first time, and says what is in the way for good.
func (a *Advisory) check(ctx context.Context) error {
	for _, w := range a.sessions {
		err := w.do(ctx, &request{kind: requestPing}).err
		switch {
		case errors.Is(err, errStandby):
			return driver.Rejectedf("", "pgadvisory: %w", errStandby)
		case err != nil:
			return err
		}
	}
	return nil
}

// Facts tells what the store promises.
func (a *Advisory) Facts() driver.Facts { return a.facts }

// Acquire asks once for c.
func (a *Advisory) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(a.facts)
	if err != nil {
		return driver.Grant{}, err
	}
	k, err := a.key(ctx, c.Name)
	if err != nil {
		return driver.Grant{}, err
	}
	r := a.session(k).do(ctx, &request{kind: requestTry, key: k, claim: c})
	a.subs.note(c, r.err == nil)
	return r.grant, r.err
}

// Renew proves claims: a session that answers has all that it was granted.
func (a *Advisory) Renew(ctx context.Context, cs []driver.Claim) ([]driver.Proof, error) {
	if len(cs) > a.facts.MaxBatch {
		return nil, driver.Rejectedf("", "%d claims in one renewal; at most %d are allowed", len(cs), a.facts.MaxBatch)
	}
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	proofs := make([]driver.Proof, len(cs))
	asks := make([]*request, len(cs))
	var failed error
	for i, c := range cs {
		c, err := c.Check(a.facts)
		if err != nil {
			proofs[i].Err = err
			continue
		}
		k, err := a.key(ctx, c.Name)
		if err != nil {
			proofs[i].Err, failed = err, err
			continue
		}
		asks[i] = &request{kind: requestProve, key: k, claim: c}
		if err := a.session(k).submit(asks[i]); err != nil {
			return nil, err
		}
	}
	for i, o := range asks {
		if o == nil {
			continue
		}
		r := o.await(ctx)
		proofs[i] = driver.Proof{TTL: r.grant.TTL, Err: r.err}
		if r.err == nil && o.claim.Token == 0 {
			g := r.grant
			proofs[i].Grant = &g
		}
		if !driver.Certain(r.err) {
			failed = r.err
		}
	}
	if failed != nil && driver.Certain(failed) {
		failed = nil
	}
	return proofs, failed
}

// Release gives back c.
func (a *Advisory) Release(ctx context.Context, c driver.Claim) error {
	if err := driver.CheckName(c.Name); err != nil {
		return err
	}
	if c.ID == "" {
		return driver.Rejectedf(c.Name, "the claim has no ID")
	}
	k, err := a.key(ctx, c.Name)
	if err != nil {
		return err
	}
	a.subs.note(c, false)
	return a.session(k).do(ctx, &request{kind: requestUnlock, key: k, claim: c}).err
}

// key returns the key of name.
func (a *Advisory) key(ctx context.Context, name string) (key, error) {
	switch a.opts.hash {
	case keyRaw:
		return rawKey(name)
	case hashSHA:
		return shaKey(a.opts.namespace, name), nil
	}
	a.mu.Lock()
	k, ok := a.names[name]
	a.mu.Unlock()
	if ok {
		return k, nil
	}
	// The server's own function: its hash is nobody else's business.
	r := a.sessions[0].do(ctx, &request{kind: requestHash, claim: driver.Claim{Name: name}})
	if r.err != nil {
		return key{}, r.err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.names) > 100_000 {
		clear(a.names)
	}
	a.names[name] = r.key
	return r.key, nil
}

// session returns the session on which k is held.
func (a *Advisory) session(k key) *warden {
	return a.sessions[(uint64(k.k)^uint64(k.k)>>32)%uint64(len(a.sessions))]
}

// Losses reports the claims of this client whose session has ended, until ctx ends.
func (a *Advisory) Losses(ctx context.Context) (<-chan driver.Loss, error) {
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	return a.subs.feed(ctx)
}

// Close ends the sessions, and with them every claim that is left.
func (a *Advisory) Close() error {
	a.once.Do(func() {
		a.end()
		a.tellAll()
		for _, k := range a.sessions {
			k.close()
		}
		a.clerk.close()
		a.subs.close()
	})
	return nil
}

// draw returns a token of this client's own.
func (a *Advisory) draw() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial = max(a.serial+1, uint64(time.Now().UnixMicro()))
	return a.serial
}
