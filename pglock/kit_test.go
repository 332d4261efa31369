package pglock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// long is how long a test waits for what must happen; nothing is measured by it.
const long = time.Minute

// psql connects as any other client would.
func psql(t testing.TB, rawURL string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// value runs a query of one value.
func value[T any](t testing.TB, c interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, query string, args ...any,
) T {
	t.Helper()
	var v T
	if err := c.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func exec(t testing.TB, c *pgx.Conn, query string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// query runs sql on a server as its superuser.
func query(t testing.TB, p *servers.PostgresServer, database, sql string) {
	t.Helper()
	if _, err := p.Query(database, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// until waits for something that gives no signal.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for this: %s", long, what)
		}
	}
}

func isHeld(t testing.TB, err error) *driver.HeldError {
	t.Helper()
	var e *driver.HeldError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *HeldError", err)
	}
	return e
}

func refused(t testing.TB, s driver.Store, c driver.Claim) *driver.HeldError {
	t.Helper()
	_, err := s.Acquire(t.Context(), c)
	return isHeld(t, err)
}

// eventually asks for c until it is granted.
func eventually(t testing.TB, s driver.Store, c driver.Claim) driver.Claim {
	t.Helper()
	until(t, "a grant of "+c.Name, func() bool {
		g, err := s.Acquire(t.Context(), c)
		c.Token = g.Token
		return err == nil
	})
	return c
}

func mutex(name string) driver.Claim { return drivertest.Mutex(name, 30*time.Second) }
