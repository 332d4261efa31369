package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock" // postgres:// and pgadvisory://
)

var (
	dibsTable    = named("dibs, lease table", dibsOn("", "postgres://%s"))
	dibsAdvisory = named("dibs, advisory", dibsOn("", "pgadvisory://%s"))
	dibsBare     = named("dibs, advisory without fences", dibsOn("", "pgadvisory://%s&fence=off"))

	// Each floor has a pool of its own, with a connection for every worker.
	tryFloor = player{name: "floor: try, unlock", open: openPostgresFloor(
		[]string{"SELECT pg_try_advisory_lock($1)"}, []string{"SELECT pg_advisory_unlock($1)"})}
	fenceFloor = player{name: "floor: try, update, unlock", open: openPostgresFloor(
		[]string{"SELECT pg_try_advisory_lock($1)", floorUpsert}, []string{"SELECT pg_advisory_unlock($1)"})}
	// The floor of a hand-over is a NOTIFY until it is heard.
	notifyFloor = player{name: "floor: NOTIFY", open: openNotifyFloor("NOTIFY baton"), seed: seedNotifyFloor}
	// As durable as a hand-over of the table: it writes a row.
	writtenFloor = player{
		name: "floor: update and NOTIFY in one", seed: seedNotifyFloor,
		open: openNotifyFloor("WITH u AS (UPDATE floor SET token = token + 1 WHERE id = 2 RETURNING id) SELECT pg_notify('baton', '') FROM u"),
	}
	rowFloor = player{name: "floor: upsert, update", open: openPostgresFloor(
		[]string{floorUpsert}, []string{"UPDATE floor SET token = token + 1 WHERE id = $1"})}
)

const floorUpsert = "INSERT INTO floor VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET token = floor.token + 1"

var postgres = store{
	name: "PostgreSQL",
	about: "One server that writes to disk before it answers (fsync and synchronous_commit on), for floors and dibs alike. " +
		"The floors are bare statements by the same driver, a connection for each worker; they keep no line, draw no fence and notice no loss. " +
		"Of the lease table's two commits the grant's waits for the disk: a release that a power cut undoes lets nobody in, and the claim ends by its TTL. " +
		"The next section has neither wait, and a NOTIFY alone as the floor of a hand-over.",
	start:    func(dir string) (server, error) { return startPostgres(dir, servers.PostgresDurable()) },
	contests: postgresContests(writtenFloor),
}

// postgresFast has no disk to wait for: what is left is what the statements cost.
var postgresFast = store{
	name:     "PostgreSQL without fsync",
	about:    "The same with fsync off.",
	start:    func(dir string) (server, error) { return startPostgres(dir) },
	contests: postgresContests(notifyFloor),
}

func postgresContests(handFloor player) []contest {
	return []contest{
		{"advisory without fences, uncontended", "time ≤ 1.3x", race{1, 1, false}, []player{tryFloor, dibsBare}},
		{"advisory without fences, 64 goroutines, each on its own name", "grants ≥ 0.8x", race{1, 64, false}, []player{tryFloor, dibsBare}},
		{"advisory, uncontended", "time ≤ 1.3x", race{1, 1, false}, []player{fenceFloor, dibsAdvisory}},
		{"advisory without fences, from the release to the other's grant", "hand-over ≤ 3x", relay{}, []player{notifyFloor, dibsBare}},
		{"lease table, uncontended", "time ≤ 1.5x", race{1, 1, false}, []player{rowFloor, dibsTable}},
		{"lease table, 64 goroutines, each on its own name", "", race{1, 64, false}, []player{rowFloor, dibsTable}},
		{"lease table, from the release to the other's grant", "hand-over ≤ 3x", relay{}, []player{handFloor, dibsTable}},
	}
}

// named is p under another name.
func named(name string, p player) player {
	p.name = name
	return p
}

type postgresServer struct{ *servers.PostgresServer }

func startPostgres(dir string, opts ...servers.PostgresOption) (server, error) {
	p, err := servers.StartPostgres(dir, opts...)
	if err != nil {
		return nil, err
	}
	_, err = p.Query("postgres", "CREATE TABLE floor (id bigint PRIMARY KEY, token bigint NOT NULL)")
	err = errors.Join(err, pglock.Init(context.Background(), p.URL("postgres")))
	return postgresServer{p}, err
}

func (p postgresServer) where() string {
	return fmt.Sprintf("postgres@%s/postgres?sslmode=disable", p.Addr())
}

func (p postgresServer) stop() error         { return p.Stop() }
func (p postgresServer) load() (load, error) { return load{}, nil }
func (p postgresServer) wipe() error         { return nil } // the tables stay from turn to turn, as in real life

func (p postgresServer) claims() (int, error) {
	rows, err := p.Query("postgres", "SELECT (SELECT count(*) FROM dibs.rows) + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(rows[0][0])
}

type postgresFloor struct {
	pool         *pgxpool.Pool
	take, unlock []string
}

type postgresLease struct {
	f    *postgresFloor
	conn *pgxpool.Conn
	id   int64
}

func openPostgresFloor(take, unlock []string) func(ctx context.Context, where string, ttl time.Duration) (client, error) {
	return func(ctx context.Context, where string, _ time.Duration) (client, error) {
		conf, err := pgxpool.ParseConfig("postgres://" + where)
		if err != nil {
			return nil, err
		}
		conf.MaxConns = 64
		pool, err := pgxpool.NewWithConfig(ctx, conf)
		return &postgresFloor{pool, take, unlock}, err
	}
}

func (f *postgresFloor) lock(ctx context.Context, name string) (lease, error) {
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	l := &postgresLease{f, conn, 0}
	for _, b := range []byte(name) {
		l.id = l.id*31 + int64(b)
	}
	if err := all(ctx, conn.Conn(), f.take, l.id); err != nil {
		conn.Release()
		return nil, err
	}
	return l, nil
}

func (l *postgresLease) Release(ctx context.Context) error {
	defer l.conn.Release()
	return all(ctx, l.conn.Conn(), l.f.unlock, l.id)
}

func all(ctx context.Context, c *pgx.Conn, statements []string, id int64) error {
	for _, s := range statements {
		if _, err := c.Exec(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}

func (f *postgresFloor) Close() error {
	f.pool.Close()
	return nil
}

// A notifyClient passes a baton: whoever has it tells the other.
type notifyClient struct {
	hears, tells *pgx.Conn
	tell         string
	first        bool
}

const baton = 1 // its row of the table floor: 1 until somebody has begun

func seedNotifyFloor(ctx context.Context, where string, _ []string) error {
	c, err := pgx.Connect(ctx, "postgres://"+where)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "INSERT INTO floor VALUES ($1, 1), (2, 1) ON CONFLICT (id) DO UPDATE SET token = 1", baton)
	return errors.Join(err, c.Close(ctx))
}

func openNotifyFloor(tell string) func(ctx context.Context, where string, ttl time.Duration) (client, error) {
	return func(ctx context.Context, where string, _ time.Duration) (client, error) {
		hears, err1 := pgx.Connect(ctx, "postgres://"+where)
		tells, err2 := pgx.Connect(ctx, "postgres://"+where)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		_, err := hears.Exec(ctx, "LISTEN baton")
		return &notifyClient{hears, tells, tell, true}, err
	}
}

func (f *notifyClient) lock(ctx context.Context, _ string) (lease, error) {
	if f.first {
		f.first = false
		tag, err := f.tells.Exec(ctx, "UPDATE floor SET token = 0 WHERE id = $1 AND token = 1", baton)
		if err != nil || tag.RowsAffected() == 1 {
			return f, err
		}
	}
	for {
		n, err := f.hears.WaitForNotification(ctx)
		if err != nil || n.PID != f.tells.PgConn().PID() {
			return f, err
		}
	}
}

func (f *notifyClient) Release(ctx context.Context) error {
	_, err := f.tells.Exec(ctx, f.tell)
	return err
}

func (f *notifyClient) Close() error {
	return errors.Join(f.hears.Close(context.Background()), f.tells.Close(context.Background()))
}
