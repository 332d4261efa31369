package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binary is a command that a kind of server needs, and where it comes from.
type binary struct {
	command string
	debian  string   // the Debian package that holds it
	dirs    []string // patterns of directories to look in when PATH has none
}

// The table of scripts/servers.sh says the same to the shell.
var (
	redisServer    = binary{command: "redis-server", debian: "redis-server"}
	postgresInit   = binary{command: "initdb", debian: "postgresql-15", dirs: postgresDirs}
	postgresServer = binary{command: "postgres", debian: "postgresql-15", dirs: postgresDirs}
	postgresBackup = binary{command: "pg_basebackup", debian: "postgresql-15", dirs: postgresDirs}
	pgbouncer      = binary{command: "pgbouncer", debian: "pgbouncer", dirs: []string{"/usr/sbin"}}
	mariadbInit    = binary{command: "mariadb-install-db", debian: "mariadb-server"}
	mariadbServer  = binary{command: "mariadbd", debian: "mariadb-server", dirs: []string{"/usr/sbin"}}
)

// Debian keeps the server's commands out of PATH, a directory a version.
var postgresDirs = []string{"/usr/lib/postgresql/*/bin"}

// find returns the path of the command, or an error that says how to get it.
func (b binary) find() (string, error) {
	path, err := exec.LookPath(b.command)
	if err == nil {
		return path, nil
	}
	for _, dir := range b.dirs {
		found, _ := filepath.Glob(filepath.Join(dir, b.command))
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("servers: %s is not installed; install it with\n\n\t%s\n\nor run scripts/servers.sh, which installs all that the tests need",
		b.command, b.install())
}

// install returns the command that installs the package, as it is to be typed.
func (b binary) install() string {
	sudo := ""
	if os.Geteuid() != 0 {
		sudo = "sudo "
	}
	return fmt.Sprintf("%sapt-get update && %sapt-get install -y -q --no-install-recommends %s", sudo, sudo, b.debian)
}
