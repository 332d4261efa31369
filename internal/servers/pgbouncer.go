package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncerServer is a connection pooler in front of a PostgreSQL server.
type PgBouncerServer struct{ *Server }

// PgBouncer starts a pooler in front of a server, in a mode: "session",
// "transaction" or "statement". It has size connections a database, and ends with
// the test. settings are more lines of its [pgbouncer] section.
func PgBouncer(t testing.TB, behind *PostgresServer, mode string, size int, settings ...string) *PgBouncerServer {
	t.Helper()
	return own(t, func(dir string) (*PgBouncerServer, error) {
		return launchPgBouncer(dir, takePort, behind, mode, size, settings)
	})
}

// URL names a database of the server behind the pooler.
func (p *PgBouncerServer) URL(database string) string {
	return "postgres://postgres@" + p.Addr() + "/" + database + "?sslmode=disable"
}

// Query runs sql in a database on a connection of its own: see [PG.Query].
func (p *PgBouncerServer) Query(database, sql string) ([][]string, error) {
	return queryOnce(p.Addr(), "postgres", database, sql)
}

func launchPgBouncer(dir string, next func() (int, error), behind *PostgresServer, mode string, size int, settings []string) (*PgBouncerServer, error) {
	path, err := pgbouncer.find()
	if err != nil {
		return nil, err
	}
	who, err := accountNamed("postgres") // it refuses root as PostgreSQL does
	if err != nil {
		return nil, err
	}
	if err := who.give(dir); err != nil {
		return nil, err
	}
	ini := filepath.Join(dir, "pgbouncer.ini")
	// The port is known only when the server starts; the rest is the same.
	write := func(port int) error {
		text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\n"+
			"unix_socket_dir=\nauth_type=any\npool_mode=%s\ndefault_pool_size=%d\nmax_client_conn=500\n", behind.Port(), port, mode, size)
		return os.WriteFile(ini, []byte(text+strings.Join(append(settings, ""), "\n")), 0o644)
	}
	s, err := launch(recipe{
		name: "pgbouncer",
		command: func(dir string, port int) command {
			c := command{path: path, args: []string{ini}, dir: "/", ready: "process up", attr: who.attr}
			if err := write(port); err != nil {
				c.args = []string{"no configuration: " + err.Error()}
			}
			return c
		},
		probe: func(addr string, _ int) error { return probePgBouncer(addr) },
	}, dir, next)
	if err != nil {
		return nil, err
	}
	return &PgBouncerServer{s}, nil
}

// probePgBouncer asks the pooler's own console. The console knows no process id,
// but a pooler that said that it is up has its port to itself.
func probePgBouncer(addr string) error {
	rows, err := queryOnce(addr, "pgbouncer", "pgbouncer", "SHOW VERSION")
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("the console at %s says %v", addr, rows)
	}
	return err
}
