package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// PostgresServer is a PostgreSQL server with one superuser, postgres, who needs
// no password, and the databases of a new cluster. Stop ends it as a "fast"
// shutdown does, without waiting for clients.
type PostgresServer struct{ *Server }

// PostgresOption changes how a PostgreSQL server runs.
type PostgresOption func(*postgresConfig)

type postgresConfig struct {
	settings []string
	durable  bool
	own      bool // it makes its cluster by itself, and copies none
	primary  *PostgresServer
}

// PostgresSet gives the server a setting, as in postgresql.conf:
// PostgresSet("idle_session_timeout", "1s").
func PostgresSet(name, value string) PostgresOption {
	return func(c *postgresConfig) { c.settings = append(c.settings, "-c", name+"="+value) }
}

// PostgresDurable has the server write to disk before it answers, as it does by
// default everywhere but here: what it has acknowledged survives Kill.
func PostgresDurable() PostgresOption {
	return func(c *postgresConfig) { c.durable = true }
}

// Postgres starts a PostgreSQL server that ends with the test.
func Postgres(t testing.TB, opts ...PostgresOption) *PostgresServer {
	t.Helper()
	return own(t, func(dir string) (*PostgresServer, error) { return launchPostgres(dir, takePort, opts) })
}

// StartPostgres starts a PostgreSQL server in dir, for a program that is no test;
// the caller stops it.
func StartPostgres(dir string, opts ...PostgresOption) (*PostgresServer, error) {
	opts = append(opts, func(c *postgresConfig) { c.own = true })
	return launchPostgres(dir, takePort, opts)
}

// PostgresStandby starts a hot standby of primary that ends with the test.
func PostgresStandby(t testing.TB, primary *PostgresServer, opts ...PostgresOption) *PostgresServer {
	t.Helper()
	opts = append(opts, func(c *postgresConfig) { c.primary = primary })
	return own(t, func(dir string) (*PostgresServer, error) { return launchPostgres(dir, takePort, opts) })
}

var sharedPostgres shared[*PostgresServer]

// SharedPostgres returns the one PostgreSQL server that the tests of this binary
// share. It needs [Main]. A test makes a database of its own there, and doesn't
// stop or pause it.
func SharedPostgres(t testing.TB) *PostgresServer {
	t.Helper()
	return sharedPostgres.get(t, "PostgreSQL", func(dir string) (*PostgresServer, error) { return launchPostgres(dir, takePort, nil) })
}

// URL names a database of the server.
func (p *PostgresServer) URL(database string) string {
	return "postgres://postgres@" + p.Addr() + "/" + database + "?sslmode=disable"
}

// Query runs sql in a database on a connection of its own: see [PG.Query].
func (p *PostgresServer) Query(database, sql string) ([][]string, error) {
	return queryOnce(p.Addr(), "postgres", database, sql)
}

// Promote makes a standby a primary and returns when it is one.
func (p *PostgresServer) Promote() error {
	rows, err := p.Query("postgres", "SELECT pg_promote()")
	if err == nil && (len(rows) != 1 || rows[0][0] != "t") {
		err = fmt.Errorf("servers: pg_promote says %v", rows)
	}
	return err
}

// Kill ends the server as a crash of the machine would (kill -9), its backends
// too, which are in process groups of their own.
func (p *PostgresServer) Kill() error {
	backends := p.backends()
	return errors.Join(p.Server.Kill(), signalAll(backends, syscall.SIGKILL), awaitGone(backends))
}

// Pause freezes the server and its backends.
func (p *PostgresServer) Pause() error {
	return errors.Join(p.Server.Pause(), pauseAll(p.backends()))
}

// Resume lets them go on.
func (p *PostgresServer) Resume() error {
	return errors.Join(resumeAll(p.backends()), p.Server.Resume())
}

func (p *PostgresServer) end() error {
	err := p.Kill()
	freePort(p.port)
	return err
}

func launchPostgres(dir string, next func() (int, error), opts []PostgresOption) (*PostgresServer, error) {
	path, err := postgresServer.find()
	if err != nil {
		return nil, err
	}
	who, err := accountNamed("postgres")
	if err != nil {
		return nil, err
	}
	var conf postgresConfig
	for _, o := range opts {
		o(&conf)
	}
	if err := who.give(dir); err != nil {
		return nil, err
	}
	if err := conf.fill(filepath.Join(dir, "data"), who); err != nil {
		return nil, err
	}
	s, err := launch(recipe{
		name:    "postgres",
		command: func(dir string, port int) command { return conf.command(path, dir, port, who) },
		probe:   func(addr string, _ int) error { return probePostgres(addr, dir) },
	}, dir, next)
	if err != nil {
		return nil, err
	}
	return &PostgresServer{s}, nil
}

func (c postgresConfig) command(path, dir string, port int, who *account) command {
	args := []string{
		"-D", filepath.Join(dir, "data"),
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=",
		"-c", "max_connections=1000",
		"-c", "autovacuum=off",
	}
	if !c.durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return command{
		path:  path,
		args:  append(args, c.settings...),
		dir:   "/",
		ready: "database system is ready to accept",
		attr:  who.attr,
		end:   syscall.SIGINT,
	}
}

// fill makes the data directory: a copy of a new cluster, or of the primary.
func (c postgresConfig) fill(data string, who *account) error {
	if c.own {
		return initPostgres(data, who)
	}
	if c.primary == nil {
		template, err := postgresTemplate()
		if err != nil {
			return err
		}
		return run(nil, "cp", "-a", template, data)
	}
	path, err := postgresBackup.find()
	if err != nil {
		return err
	}
	return run(who, path, "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-h", "127.0.0.1", "-p", strconv.Itoa(c.primary.Port()), "-U", "postgres")
}

// postgresTemplate is the directory of a new cluster, which takes a second to
// make, for all servers of this test binary to copy.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	if !inMain.Load() {
		return "", errors.New("servers: PostgreSQL needs func TestMain(m *testing.M) { servers.Main(m) }, which removes what its servers are copied from")
	}
	who, err := accountNamed("postgres")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "dibs-server-")
	if err != nil {
		return "", fmt.Errorf("servers: make a data directory: %w", err)
	}
	toEnd.mu.Lock()
	toEnd.all = append(toEnd.all, func() error { return os.RemoveAll(dir) })
	toEnd.mu.Unlock()
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chmod(dir, 0o711), who.give(data)); err != nil {
		return "", err
	}
	return data, initPostgres(data, who)
})

// initPostgres makes a new cluster.
func initPostgres(data string, who *account) error {
	path, err := postgresInit.find()
	if err != nil {
		return err
	}
	return run(who, path, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N", "--no-instructions")
}

// run runs a command to its end.
func run(who *account, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	who.attr(cmd.SysProcAttr)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("servers: %s: %w; it said:\n%s", path, err, out)
	}
	return nil
}

func probePostgres(addr, dir string) error {
	rows, err := queryOnce(addr, "postgres", "postgres", "SHOW data_directory")
	if err != nil {
		return err
	}
	if want := filepath.Join(dir, "data"); len(rows) != 1 || rows[0][0] != want {
		return fmt.Errorf("another server answers at %s", addr)
	}
	return nil
}
