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
	rowFloor = player{name: "floor: upsert, update", open: openPostgresFloor(
		[]string{floorUpsert}, []string{"UPDATE floor SET token = token + 1 WHERE id = $1"})}
)

const floorUpsert = "INSERT INTO floor VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET token = floor.token + 1"

var postgres = store{
	name: "PostgreSQL",
	about: "One server that writes to disk before it answers (fsync and synchronous_commit on), for floors and dibs alike. " +
		"The floors are bare statements by the same driver, a connection for each worker; they keep no line, draw no fence and notice no loss.",
	start: startPostgres,
	contests: []contest{
		{"advisory without fences, uncontended", "time ≤ 1.3x", race{1, 1, false}, []player{tryFloor, dibsBare}},
		{"advisory without fences, 64 goroutines, each on its own name", "grants ≥ 0.8x", race{1, 64, false}, []player{tryFloor, dibsBare}},
		{"advisory, uncontended", "time ≤ 1.3x", race{1, 1, false}, []player{fenceFloor, dibsAdvisory}},
		{"lease table, uncontended", "time ≤ 1.5x", race{1, 1, false}, []player{rowFloor, dibsTable}},
		{"lease table, 64 goroutines, each on its own name", "", race{1, 64, false}, []player{rowFloor, dibsTable}},
	},
}

// named is p under another name.
func named(name string, p player) player {
	p.name = name
	return p
}

type postgresServer struct{ *servers.PostgresServer }

func startPostgres(dir string) (server, error) {
	p, err := servers.StartPostgres(dir, servers.PostgresDurable())
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
	rows, err := p.Query("postgres", "SELECT (SELECT count(*) FROM dibs.claims) + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')")
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
