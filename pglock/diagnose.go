package pglock

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

var (
	_ driver.Diagnoser = (*Table)(nil)
	_ driver.Diagnoser = (*Advisory)(nil)
	_ driver.Diagnoser = (*Shedlock)(nil)
)

//go:embed diagnose.sql
var diagnoseSQL string

// fewConnections is how few free connections are worth a warning: a client of the
// table takes up to eight.
const fewConnections = 16

// Diagnose looks at the server, the schema, the rights of the role and what stands
// between.
func (t *Table) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	x := &exam{schema: t.schema, grants: Grants(t.schema, "ROLE")}
	err := t.call(ctx, func(ctx context.Context, s *session) error {
		if err := x.look(ctx, s); err != nil {
			return err
		}
		x.server()
		x.pooler(s)
		x.add(driver.Fine, "schema", fmt.Sprintf("%s, version %d", t.schema, schemaVersion), "") // opening refuses others
		if err := x.rights(ctx, s); err != nil {
			return err
		}
		x.durability()
		x.replicas("the latest claims and tokens", false)
		x.vacuum()
		x.common(s)
		return nil
	})
	return x.found, err
}

// Diagnose looks, on a connection of its own, at the server, what stands between,
// and, if there are fences, the rights of the role.
func (a *Advisory) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	s, err := a.dial.connect(ctx)
	if err != nil {
		if e := refusedForGood(a.schema, err); e != nil {
			return nil, e
		}
		return nil, unknown(err)
	}
	defer s.drop()
	x := &exam{schema: a.schema, grants: advisoryGrants(a.schema, "ROLE")}
	if err := x.look(ctx, s); err != nil {
		return nil, unknown(err)
	}
	x.server()
	x.pooler(s)
	if a.opts.fenced {
		if err := x.rights(ctx, s); err != nil {
			return x.found, unknown(err)
		}
	} else {
		x.add(driver.Info, "fences", "none (fence=off): a resource has nothing to tell an old holder by", "")
	}
	x.replicas("all advisory locks", true)
	if a.opts.hash == hashText {
		x.add(driver.Warn, "keys", "32 bits (hash=hashtext): among 300,000 names about ten pairs share a key, and exclude each other", "hash=sha256, unless other programs lock the same keys")
	}
	x.add(driver.Info, "holders", "they answer for themselves when dibs ls, show or force-unlock asks; another program's lock is shown if its name is known, and is never taken away",
		"SELECT pid, objid, mode, granted FROM pg_locks WHERE locktype = 'advisory'; pg_terminate_backend(pid) frees all locks of one client")
	x.common(s)
	return x.found, nil
}

// Diagnose looks at the server, the rights of the role and what the layout lacks.
func (s *Shedlock) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	x := &exam{schema: s.table.schema, grants: s.table.grants("ROLE")}
	err := s.call(ctx, func(ctx context.Context, c *session) error {
		if err := x.look(ctx, c); err != nil {
			return err
		}
		x.server()
		x.add(driver.Info, "layout", fmt.Sprintf("the table %s of ShedLock: mutexes alone, no line (a waiter asks about once a second), no records, no journal; names of up to %d characters", s.table.name, s.table.width),
			"all programs that lock a name must agree on the table: who uses the lease table (layout=lease) sees nothing of these locks")
		if err := x.rights(ctx, c); err != nil {
			return err
		}
		x.durability()
		x.replicas("the latest locks and tokens", false)
		x.common(c)
		return nil
	})
	return x.found, err
}

// An exam collects findings from what the server tells.
type exam struct {
	schema, grants string
	found          []driver.Finding

	version, up      string
	most, used       int
	fsync, commit    string
	standbys         int
	synchronous      string
	autovacuum, idle string
	encrypted        bool
	role             string
	super            bool
}

func (x *exam) add(level driver.Level, check, text, hint string) {
	x.found = append(x.found, driver.Finding{Check: check, Level: level, Text: text, Hint: hint})
}

func (x *exam) look(ctx context.Context, s *session) error {
	return s.run(ctx, parseStatements(diagnoseSQL, x.schema).named("server"), nil, func(rows pgx.Rows) error {
		return rows.Scan(&x.version, &x.up, &x.most, &x.used, &x.fsync, &x.commit, &x.standbys, &x.synchronous,
			&x.autovacuum, &x.idle, &x.encrypted, &x.role, &x.super)
	})
}

func (x *exam) server() {
	x.add(driver.Fine, "server", fmt.Sprintf("PostgreSQL %s, a primary, up for %s", x.version, x.up), "")
}

func (x *exam) pooler(s *session) {
	const check = "pooler"
	if !s.pooled {
		x.add(driver.Fine, check, "none was met: the connection is the server's own", "")
		return
	}
	x.add(driver.Info, check, fmt.Sprintf("there is one in between (the server process is %d, the pooler says %d): nothing can be listened to, so who waits asks five times a second", s.pid, s.PgConn().PID()),
		"connect to the server itself, if waiting must be quicker")
}

// rights tells which of the rights that the store needs the role lacks.
func (x *exam) rights(ctx context.Context, s *session) error {
	const check = "rights"
	var lacks []string
	kinds, objects, privileges := wanted(x.grants)
	err := s.run(ctx, parseStatements(diagnoseSQL, x.schema).named("rights"), []any{kinds, objects, privileges}, func(rows pgx.Rows) error {
		var one string
		err := rows.Scan(&one)
		lacks = append(lacks, one)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(lacks) > 0:
		x.add(driver.Warn, check, fmt.Sprintf("the role %s lacks: %s", x.role, strings.Join(lacks, ", ")), "dibs store init --print shows the grants")
	case x.super:
		x.add(driver.Info, check, fmt.Sprintf("the role %s is a superuser, and locks need no such power", x.role), "dibs store init --print shows the grants that a role of its own needs")
	default:
		x.add(driver.Fine, check, fmt.Sprintf("the role %s may do what locks need", x.role), "")
	}
	return nil
}

// wanted takes grants, as Grants prints them, apart.
func wanted(grants string) (kinds, objects, privileges []string) {
	for line := range strings.SplitSeq(grants, "\n") {
		line = strings.TrimPrefix(strings.TrimSuffix(line, " TO ROLE;"), "GRANT ")
		rights, on, _ := strings.Cut(line, " ON ")
		kind := "table"
		for _, k := range []string{"schema", "sequence", "function"} {
			if rest, ok := strings.CutPrefix(on, strings.ToUpper(k)+" "); ok {
				kind, on = k, rest
			}
		}
		for object := range strings.SplitSeq(on, ", ") {
			if kind == "schema" {
				object = strings.Trim(object, `"`) // it is taken as it is
			}
			for right := range strings.SplitSeq(rights, ", ") {
				kinds, objects, privileges = append(kinds, kind), append(objects, object), append(privileges, right)
			}
		}
	}
	return kinds, objects, privileges
}

func (x *exam) durability() {
	const check = "persistence"
	switch {
	case x.fsync == "off":
		x.add(driver.Warn, check, "fsync is off: a crash of the machine may forget locks that are held, and damage the database", "fsync = on")
	case x.commit == "off":
		x.add(driver.Warn, check, "synchronous_commit is off: a crash forgets the locks of the last moments", "ALTER DATABASE ... SET synchronous_commit = on, for what comes through the pooler")
	default:
		x.add(driver.Fine, check, "every change is on disk before it is answered", "")
	}
}

// replicas tells what a failover forgets: everything, or what was not replicated
// yet.
func (x *exam) replicas(what string, everything bool) {
	const check = "replicas"
	switch {
	case x.standbys == 0 && x.synchronous == "":
		x.add(driver.Fine, check, "none: there is no failover that could forget a lock", "")
	case x.standbys == 0 && !everything:
		x.add(driver.Warn, check, "none, and commits wait for "+x.synchronous+": every change hangs", "bring the standby back, or take it out of synchronous_standby_names")
	case x.synchronous != "" && !everything:
		x.add(driver.Fine, check, fmt.Sprintf("%d, and commits wait for %s", x.standbys, x.synchronous), "")
	default:
		x.add(driver.Warn, check, fmt.Sprintf("%d: a failover forgets %s, so a lock can be held twice across it", x.standbys, what), "synchronous_standby_names, for postgres://; and have the resource check fences")
	}
}

func (x *exam) vacuum() {
	if x.autovacuum != "on" {
		x.add(driver.Warn, "vacuum", "autovacuum is off: the tables, which are small and change all the time, grow without end", "autovacuum = on")
	}
}

// common is what both stores are about: time-outs, connections and the wire.
func (x *exam) common(s *session) {
	if x.idle != "0" {
		text := fmt.Sprintf("idle_session_timeout is %s ms; the sessions of dibs set their own", x.idle)
		if s.pooled {
			text = fmt.Sprintf("idle_session_timeout is %s ms, and it holds for the pooler's connections", x.idle)
		}
		x.add(driver.Info, "time-outs", text, "")
	}
	if free := x.most - x.used; free < fewConnections {
		x.add(driver.Warn, "connections", fmt.Sprintf("%d of %d are free", max(free, 0), x.most), "raise max_connections, or put a pooler in between (postgres:// alone bears one)")
	} else {
		x.add(driver.Fine, "connections", fmt.Sprintf("%d of %d are free", free, x.most), "")
	}
	host, _, err := net.SplitHostPort(s.raw.RemoteAddr().String())
	ip := net.ParseIP(host)
	switch {
	case err != nil || ip != nil && ip.IsLoopback():
		x.add(driver.Fine, "wire", "within this host", "")
	case x.encrypted:
		x.add(driver.Fine, "wire", "encrypted", "")
	default:
		x.add(driver.Warn, "wire", "not encrypted", "sslmode=verify-full")
	}
}
