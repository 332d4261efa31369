package pglock_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// The usual calls are one statement each, which must leave what the long way leaves
// that has the reference store's rules. A store with a journal goes no other.
func TestShortcutsWriteWhatTheLongWayWrites(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	b, admin := open(t, rawURL), psql(t, rawURL)
	stores := map[string]driver.Store{"short": open(t, rawURL), "long": open(t, with(t, rawURL, "", "journal", "on"))}
	for name, c := range map[string]driver.Claim{
		"exclusive": {Units: 1, Capacity: 1},
		"cautious":  {Units: 1, Capacity: 1, Keep: time.Second, Delay: 2 * time.Second, Note: "why"},
		"shared":    {Units: 1, Capacity: driver.Unlimited, Note: "who"},
		"counted":   {Units: 2, Capacity: 3, Delay: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c.TTL = 30 * time.Second
			var taken, handed, left [2]string
			for i, how := range []string{"short", "long"} {
				s := stores[how]
				c.Name = name + "/" + how
				first, _ := drivertest.MustAcquire(t, s, mutex(c.Name)) // there is no shortcut to a new name
				drivertest.MustRelease(t, s, first)
				c.ID = drivertest.Mutex("", 0).ID
				held, _ := drivertest.MustAcquire(t, s, c)
				taken[i] = written(t, admin, c.Name)
				w := drivertest.Mutex(c.Name, time.Minute)
				w.Patience, w.Keep, w.Delay, w.Note = 20*time.Second, time.Second, 2*time.Second, "next"
				refused(t, b, w)
				held.Keep = 0
				drivertest.MustRelease(t, s, held)
				handed[i] = written(t, admin, c.Name)
				next, _ := drivertest.MustAcquire(t, b, w)
				next.Keep = 0
				drivertest.MustRelease(t, s, next)
				left[i] = written(t, admin, c.Name)
			}
			for what, x := range map[string][2]string{"taken": taken, "handed on": handed, "given back": left} {
				if x[0] != x[1] {
					t.Errorf("%s: the short way leaves\n%s\nand the long way\n%s", what, x[0], x[1])
				}
			}
		})
	}
}

// written is all that is in the tables about a name, but for what differs each time.
func written(t *testing.T, c *pgx.Conn, name string) string {
	t.Helper()
	return value[string](t, c, `
		SELECT coalesce(string_agg(x::text, E'\n'), 'nothing') FROM (
			SELECT to_jsonb(n) - CASE WHEN state = 0
			       THEN '{name,touched,seq,id,token,fence,units,capacity,since,until,ttl,patience,keep,heard,delay,died,by_force,origin,note}'::text[]
			       ELSE '{name,touched,id,since,until,heard}' END
			    || CASE WHEN state = 0 THEN '{}' ELSE jsonb_build_object('lives', until - since, 'heard', nullif(heard, 0) - since) END
			FROM dibs.names n WHERE name = $1
			UNION ALL
			SELECT to_jsonb(c) - '{name,id,since,until,heard}'::text[] || jsonb_build_object('lives', until - since)
			FROM dibs.claims c WHERE name = $1) _ (x)`, name)
}
