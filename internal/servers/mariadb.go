package servers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// MariaDBServer is a MariaDB server with one superuser, root, who needs no
// password, and no databases but its own.
type MariaDBServer struct{ *Server }

// MariaDB starts a MariaDB server that ends with the test. It needs [Main].
func MariaDB(t testing.TB) *MariaDBServer {
	t.Helper()
	return own(t, func(dir string) (*MariaDBServer, error) { return launchMariaDB(dir, takePort) })
}

var sharedMariaDB shared[*MariaDBServer]

// SharedMariaDB returns the one MariaDB server that the tests of this binary share.
// It needs [Main]. A test makes a database of its own there, and doesn't stop or
// pause it.
func SharedMariaDB(t testing.TB) *MariaDBServer {
	t.Helper()
	return sharedMariaDB.get(t, "MariaDB", func(dir string) (*MariaDBServer, error) { return launchMariaDB(dir, takePort) })
}

// DSN names a database of the server, or none, as go-sql-driver/mysql wants it.
func (m *MariaDBServer) DSN(database string) string {
	return "root@tcp(" + m.Addr() + ")/" + database
}

func launchMariaDB(dir string, next func() (int, error)) (*MariaDBServer, error) {
	path, err := mariadbServer.find()
	if err != nil {
		return nil, err
	}
	template, err := mariadbTemplate()
	if err != nil {
		return nil, err
	}
	if err := run(nil, "cp", "-a", template, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	s, err := launch(recipe{
		name:    "mariadb",
		command: func(dir string, port int) command { return mariadbCommand(path, dir, port) },
		probe:   func(addr string, pid int) error { return probeMariaDB(addr, dir, pid) },
	}, dir, next)
	if err != nil {
		return nil, err
	}
	return &MariaDBServer{s}, nil
}

func mariadbCommand(path, dir string, port int) command {
	data := filepath.Join(dir, "data")
	return command{
		path: path,
		args: append(mariadbUser([]string{"--no-defaults"}),
			"--datadir="+data,
			"--port="+strconv.Itoa(port),
			"--bind-address=127.0.0.1",
			"--socket=socket", // in the data directory; a whole path may be too long
			"--pid-file="+filepath.Join(dir, "pid"),
			"--skip-log-bin",
			"--innodb-flush-log-at-trx-commit=0",
			"--innodb-buffer-pool-size=32M",
			"--performance-schema=OFF",
			"--max-connections=300",
		),
		dir:   dir,
		ready: "ready for connections",
	}
}

// mariadbUser adds what MariaDB wants to be told before it runs as root.
func mariadbUser(args []string) []string {
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}

// mariadbTemplate is the data directory of a new server, which takes a second or
// two to make, for all servers of this test binary to copy.
var mariadbTemplate = sync.OnceValues(func() (string, error) {
	if !inMain.Load() {
		return "", errors.New("servers: MariaDB needs func TestMain(m *testing.M) { servers.Main(m) }, which removes what its servers are copied from")
	}
	path, err := mariadbInit.find()
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
	args := append(mariadbUser([]string{"--no-defaults"}), "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	return data, run(nil, path, args...)
})

// probeMariaDB reads the greeting, which the server sends unasked, and whose
// process the server says it is.
func probeMariaDB(addr, dir string, pid int) error {
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return err
	}
	if said := strings.TrimSpace(string(text)); said != strconv.Itoa(pid) {
		return fmt.Errorf("the server in %s is process %s and not %d", dir, said, pid)
	}
	conn, err := net.DialTimeout("tcp", addr, replyPatience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(replyPatience)); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, 5); err != nil { // length, number, version of the protocol
		return err
	}
	version, err := r.ReadString(0)
	if err == nil && !strings.Contains(version, "MariaDB") {
		err = fmt.Errorf("another server answers at %s: version %q", addr, version)
	}
	return err
}
