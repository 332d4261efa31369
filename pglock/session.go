package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

const (
	// connectWait bounds how long a connection may take to be made.
	connectWait = 10 * time.Second
	// callWait bounds how long a statement may take before its connection is
	// given up.
	callWait = 10 * time.Second
)

// A dialer makes sessions to one server.
type dialer struct {
	conn     *pgx.ConnConfig
	pooler   pooler
	settings string // run on every session of our own
	local    string // run in every transaction behind a pooler
	hear     func(*pgconn.Notification)
	pooled   *atomic.Bool // a pooler was met
}

// A session is one connection to the server. One goroutine uses it at a time.
type session struct {
	*pgx.Conn
	raw    net.Conn
	pooled bool   // the server behind it may be another for every transaction
	local  string // what a transaction sets for itself behind a pooler
	pid    uint32

	learned bool // the statements of shortcuts are prepared
}

// connect opens a session, and refuses a standby.
func (d *dialer) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	s, err := d.dial(ctx)
	for tries := 1; errors.Is(err, errShape) && tries < maxTries; tries++ {
		s, err = d.dial(ctx)
	}
	return s, err
}

// maxTries is how many connections are made for a session, at the most.
const maxTries = 16

// errShape says that what answered is no server of PostgreSQL's, or a pooler that has
// given us one's connection on which a former client's answers were still to come.
var errShape = errors.New("an answer of another shape than PostgreSQL's")

// dial is one try of connect.
func (d *dialer) dial(ctx context.Context) (*session, error) {
	conf := d.conn.Copy()
	// Statements that are prepared stay on one server connection, and a pooler gives
	// the next transaction another.
	pooled := d.pooler == poolerTransaction || d.pooled.Load()
	if pooled {
		conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	var done atomic.Bool
	var raw net.Conn
	dial := conf.DialFunc
	// pgx asks the server over a new connection to cancel what a connection that
	// it gives up was doing, and waits for that. Statements here are short, and
	// nobody is to be waited for on a network that fails.
	conf.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if done.Load() {
			return nil, net.ErrClosed
		}
		c, err := dial(ctx, network, addr)
		raw = c
		return c, err
	}
	if d.hear != nil {
		conf.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { d.hear(n) }
	}
	var pid uint32
	conf.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		var err error
		pid, err = inspect(ctx, c)
		return err
	}
	c, err := pgx.ConnectConfig(ctx, conf)
	done.Store(true)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: c, raw: raw, local: d.local, pid: pid}
	// A pooler answers with a number of its own at the start. What the server
	// says it is stays the same while the pooler is idle, so it alone tells nothing.
	s.pooled = pooled || d.pooler == poolerAuto && pid != c.PgConn().PID()
	switch {
	case s.pooled && !pooled:
		d.pooled.Store(true)
		s.bye()
		return d.connect(ctx)
	case s.pooled:
		return s, nil
	}
	if _, err := c.PgConn().Exec(ctx, d.settings).ReadAll(); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// inspect refuses servers that can't be a store, and tells the backend's pid.
func inspect(ctx context.Context, c *pgconn.PgConn) (pid uint32, err error) {
	rs, err := c.Exec(ctx, "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(rs) != 1 || len(rs[0].Rows) != 1 {
		return 0, errShape
	}
	row := rs[0].Rows[0]
	if _, err := fmt.Sscan(string(row[0]), &pid); err != nil {
		return 0, err
	}
	if string(row[1]) != "f" {
		return 0, errStandby
	}
	if e := c.ParameterStatus("server_encoding"); e != "UTF8" && e != "" {
		return 0, driver.Rejectedf("", "postgres: the database's encoding is %s; names need UTF8", e)
	}
	return pid, nil
}

// prepare prepares statements by their names, in one round trip.
func (s *session) prepare(ctx context.Context, sql statements, names []string) error {
	p := s.PgConn().StartPipeline(ctx)
	for _, name := range names {
		p.SendPrepare(name, sql.named(name), nil)
	}
	err := p.Sync()
	for err == nil {
		var got any
		if got, err = p.GetResults(); got == nil {
			break
		} else if _, ok := got.(*pgconn.PipelineSync); ok {
			break
		}
	}
	return errors.Join(err, p.Close())
}

// drop closes the session without a word to a server that may not answer, and
// waits until pgx has let go of it.
func (s *session) drop() {
	_ = s.raw.Close()
	_ = s.Close(context.Background())
	<-s.PgConn().CleanupDone()
}

// bye closes the session in good order; it sends one message and awaits nothing.
func (s *session) bye() {
	_ = s.raw.SetDeadline(time.Now().Add(time.Second))
	_ = s.Close(context.Background())
	<-s.PgConn().CleanupDone()
}

// run runs one statement in a transaction of its own at READ COMMITTED, and hands
// its rows to each.
func (s *session) run(ctx context.Context, sql string, args []any, each func(pgx.Rows) error) error {
	if !s.pooled {
		rows, err := s.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		return drain(rows, each)
	}
	// The database's defaults hold here, and nothing that a session sets lasts: so
	// each transaction sets what it needs, in the same round trip.
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	b.Queue(s.local)
	b.Queue(sql, args...)
	b.Queue("COMMIT")
	return s.rolledBack(s.batch(ctx, &b, each))
}

// rolledBack ends what may be left of a transaction that failed with err.
func (s *session) rolledBack(err error) error {
	if err != nil && !s.IsClosed() && s.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), callWait)
		defer cancel()
		if _, e := s.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); e != nil {
			s.drop()
			return errors.Join(err, e)
		}
	}
	return err
}

func (s *session) batch(ctx context.Context, b *pgx.Batch, each func(pgx.Rows) error) (err error) {
	res := s.SendBatch(ctx, b)
	defer func() {
		if e := res.Close(); err == nil {
			err = e
		}
	}()
	for range 2 {
		if _, err := res.Exec(); err != nil {
			return err
		}
	}
	rows, err := res.Query()
	if err != nil {
		return err
	}
	if err := drain(rows, each); err != nil {
		return err
	}
	tag, err := res.Exec()
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the transaction ended with %s", tag)
	}
	return err
}

func drain(rows pgx.Rows, each func(pgx.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if each == nil {
			continue
		}
		if err := each(rows); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}
