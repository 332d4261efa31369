package servers_test

import (
	"net"
	"testing"
	"time"

	"github.com/dibslock/dibs/internal/servers"
)

func TestMariaDBStartsAgainAfterKillAndStop(t *testing.T) {
	t.Parallel()
	m := servers.MariaDB(t)
	pid := m.PID()
	for name, end := range map[string]func() error{"kill": m.Kill, "stop": m.Stop} {
		ok(t, end())
		if conn, err := net.DialTimeout("tcp", m.Addr(), time.Second); err == nil {
			conn.Close()
			t.Errorf("%s: the server still listens", name)
		}
		ok(t, m.Restart()) // which has it answer
		if m.PID() == pid {
			t.Errorf("%s: Restart started no new process", name)
		}
	}
}
