//go:build unix

package cli_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
)

// The scripts below testdata run on real servers, which all of them share, each
// with a namespace of its own:
//
//	every       on every store that has all that the command can ask for, SQLite too
//	servers     on the servers among them
//	remote      on every server
//	redis, postgres, pgadvisory
//
// They know these variables: DIBS_STORE_URL; SCHEME; OFF, the store without its
// journal; OTHER, the store by another name; LOCKER and WRONG, the store for the user locker with the password s3cret
// and with another; FRESH, a store that was not made yet.
func TestScriptsOnServers(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector every dibs takes its time to start: make more runs these")
	}
	t.Parallel()
	redis, postgres := servers.SharedRedis(t), sharedPostgres(t)
	beds := map[string]func(*testscript.Env) error{
		"redis":      func(env *testscript.Env) error { return redisBed(t, env, redis) },
		"postgres":   func(env *testscript.Env) error { return postgresBed(t, env, postgres, "postgres") },
		"pgadvisory": func(env *testscript.Env) error { return postgresBed(t, env, postgres, "pgadvisory") },
	}
	for dir, stores := range map[string][]string{
		"every":      {"redis", "postgres"},
		"servers":    {"redis", "postgres"},
		"remote":     {"redis", "postgres", "pgadvisory"},
		"redis":      {"redis"},
		"postgres":   {"postgres"},
		"pgadvisory": {"pgadvisory"},
	} {
		for _, store := range stores {
			t.Run(dir+"/"+store, func(t *testing.T) {
				t.Parallel()
				runScripts(t, "testdata/"+dir, beds[store])
			})
		}
	}
}

// A bed is what the store of a script stands on.
type bed struct {
	t    *testing.T // ends after all scripts
	addr string
	// admin does what a line of rights, or a command of the server's, says.
	admin    func(text string) error
	postgres *servers.PostgresServer // nil: it is another server

	proxy *proxy.Proxy // nil: none yet
}

const bedKey = "bed"

var beds atomic.Int64 // numbers the namespaces

func (b *bed) make(env *testscript.Env, store url.URL) {
	env.Values[bedKey] = b
	env.Setenv("SCHEME", store.Scheme)
	env.Setenv("DIBS_STORE_URL", store.String())
	env.Setenv("OFF", with(store, "journal", "off"))
	other := store
	other.Host = strings.Replace(store.Host, "127.0.0.1", "localhost", 1)
	if store.Scheme == "sqlite" {
		other.Path = env.WorkDir + "/link.db"
		if err := os.Symlink("locks.db", other.Path); err != nil {
			env.T().Fatal(err)
		}
	}
	env.Setenv("OTHER", other.String())
	for name, password := range map[string]string{"LOCKER": "s3cret", "WRONG": "wr0ng"} {
		store.User = url.UserPassword("locker", password)
		env.Setenv(name, store.String())
	}
}

// with is a URL with one parameter more.
func with(u url.URL, key, value string) string {
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func sqliteBed(env *testscript.Env) {
	(&bed{}).make(env, url.URL{Scheme: "sqlite", Path: env.WorkDir + "/locks.db"})
}

func redisBed(t *testing.T, env *testscript.Env, r *servers.RedisServer) error {
	b := &bed{t: t, addr: r.Addr(), admin: func(text string) error {
		var args []any
		for word := range strings.FieldsSeq(strings.ReplaceAll(text, "PASSWORD", "s3cret")) {
			args = append(args, word)
		}
		_, err := r.Do(args...)
		return err
	}}
	b.make(env, url.URL{Scheme: "redis", Host: r.Addr(), Path: "/0", RawQuery: fmt.Sprintf("prefix=space%d", beds.Add(1))})
	return nil
}

func postgresBed(t *testing.T, env *testscript.Env, p *servers.PostgresServer, scheme string) error {
	n, database := beds.Add(1), "postgres"
	if scheme == "pgadvisory" {
		// Advisory locks are the database's, and a listing wants all who hold any to
		// answer: also those whom another script has cut off.
		database = fmt.Sprintf("bed%d", n)
		if _, err := p.Query("postgres", "CREATE DATABASE "+database); err != nil {
			return err
		}
	}
	b := &bed{t: t, addr: p.Addr(), postgres: p, admin: func(text string) error {
		_, err := p.Query(database, text)
		return err
	}}
	u := url.URL{
		Scheme: scheme, User: url.User("postgres"), Host: p.Addr(), Path: "/" + database,
		RawQuery: fmt.Sprintf("sslmode=disable&schema=space%d", n),
	}
	env.Setenv("FRESH", with(u, "schema", fmt.Sprintf("fresh%d", n)))
	setup, err := driver.PlanSetup(u.String())
	if err != nil {
		return err
	}
	if _, err := setup.Make(context.Background()); err != nil {
		return err
	}
	b.make(env, u)
	return nil
}

var passwords sync.Once

// sharedPostgres is the shared server, where the role locker needs its password.
func sharedPostgres(t *testing.T) *servers.PostgresServer {
	t.Helper()
	p := servers.SharedPostgres(t)
	passwords.Do(func() {
		path := filepath.Join(p.Dir(), "data", "pg_hba.conf")
		rules, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append([]byte("host all locker 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600)
		}
		if err == nil {
			_, err = p.Query("postgres", "CREATE ROLE locker LOGIN PASSWORD 's3cret'; SELECT pg_reload_conf()")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return p
}

// bedOf is the bed of a script on a server.
func bedOf(ts *testscript.TestScript) *bed { return ts.Value(bedKey).(*bed) }

// proxied VAR sets VAR to the store's URL through a proxy of the script's own.
func proxied(ts *testscript.TestScript, _ bool, args []string) {
	b := bedOf(ts)
	b.proxy = proxy.New(b.t, b.addr)
	ts.Setenv(args[0], strings.Replace(ts.Getenv("DIBS_STORE_URL"), b.addr, b.proxy.Addr(), 1))
}

// network pass|blackhole|refuse sets what the proxy does.
func network(ts *testscript.TestScript, _ bool, args []string) {
	p := bedOf(ts).proxy
	switch args[0] {
	case "pass":
		p.Heal()
	case "blackhole":
		p.Set(proxy.BlackHole)
	case "refuse":
		p.Set(proxy.Refuse)
		p.CutAll()
	default:
		ts.Fatalf("unknown state of the network: %s", args[0])
	}
}

// admin FILE does what is in FILE as the server's administrator; admin -c TEXT does
// what TEXT says.
func admin(ts *testscript.TestScript, _ bool, args []string) {
	text := args[len(args)-1]
	if args[0] != "-c" {
		text = ts.ReadFile(text)
	}
	ts.Check(bedOf(ts).admin(text))
}

// server VAR redis ARG... starts a server and sets VAR to its URL; server VAR
// redis of MASTER starts a replica of another such; server VAR quorum starts three
// that are not a quorum yet; server VAR pgbouncer MODE
// starts a pooler before the script's own.
func server(ts *testscript.TestScript, _ bool, args []string) {
	b := bedOf(ts)
	switch args[1] {
	case "redis":
		opts := args[2:]
		if len(opts) == 2 && opts[0] == "of" {
			master, err := url.Parse(ts.Getenv(opts[1]))
			ts.Check(err)
			opts = []string{"--replicaof", master.Hostname(), master.Port()}
		}
		ts.Setenv(args[0], "redis://"+servers.Redis(b.t, servers.RedisArgs(opts...)).Addr())
	case "quorum":
		var addrs []string
		for _, r := range servers.Redises(b.t, 3) {
			addrs = append(addrs, r.Addr())
		}
		ts.Setenv(args[0], "redlock://"+strings.Join(addrs, ","))
	case "pgbouncer":
		p := servers.PgBouncer(b.t, b.postgres, args[2], 5)
		ts.Setenv(args[0], strings.Replace(ts.Getenv("DIBS_STORE_URL"), b.addr, p.Addr(), 1))
	default:
		ts.Fatalf("unknown server %s", args[1])
	}
}
