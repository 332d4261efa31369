package redislock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// A server that refuses for the time being ends no claim and grants none: the
// answer is unknown, says why, and goes away with its cause.
func TestServersThatRefuseForTheTimeBeing(t *testing.T) {
	for _, c := range []struct {
		word   string
		refuse func(t *testing.T, r *servers.RedisServer, dir string) (repair func())
	}{
		{"READONLY", func(t *testing.T, r *servers.RedisServer, _ string) func() {
			do(t, r, "REPLICAOF", "127.0.0.1", "1")
			return func() { do(t, r, "REPLICAOF", "NO", "ONE") }
		}},
		{"LOADING", func(t *testing.T, r *servers.RedisServer, _ string) func() {
			do(t, r, "DEBUG", "POPULATE", 2000, "key", 1024)
			do(t, r, "CONFIG", "SET", "key-load-delay", "10000", "loading-process-events-interval-bytes", "1024")
			conn, err := r.Dial()
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Send("DEBUG", "RELOAD"); err != nil {
				t.Fatal(err)
			}
			soon(t, "it reads its data", func() bool {
				_, err := r.Do("GET", "any")
				return err != nil && strings.Contains(err.Error(), "LOADING")
			})
			return func() {
				do(t, r, "CONFIG", "SET", "key-load-delay", "0")
				conn.Close()
			}
		}},
		{"NOREPLICAS", func(t *testing.T, r *servers.RedisServer, _ string) func() {
			do(t, r, "CONFIG", "SET", "min-replicas-to-write", "1")
			return func() { do(t, r, "CONFIG", "SET", "min-replicas-to-write", "0") }
		}},
		{"MISCONF", func(t *testing.T, r *servers.RedisServer, dir string) func() {
			do(t, r, "CONFIG", "SET", "save", "3600 1")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			do(t, r, "BGSAVE")
			soon(t, "the save fails", func() bool {
				return strings.Contains(do(t, r, "INFO", "persistence").(string), "rdb_last_bgsave_status:err")
			})
			return func() { do(t, r, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no") }
		}},
		{"BUSY", func(t *testing.T, r *servers.RedisServer, _ string) func() {
			do(t, r, "CONFIG", "SET", "busy-reply-threshold", "1")
			conn, err := r.Dial()
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Send("EVAL", "while true do end", 0); err != nil {
				t.Fatal(err)
			}
			soon(t, "the script is too slow", func() bool {
				_, err := r.Do("GET", "any")
				return err != nil && strings.Contains(err.Error(), "BUSY")
			})
			return func() {
				do(t, r, "SCRIPT", "KILL")
				conn.Close()
			}
		}},
	} {
		t.Run(c.word, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			r := servers.Redis(t, servers.RedisArgs("--dir", dir, "--enable-debug-command", "local"))
			s := open(t, r.Addr(), "")
			m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
			repair := c.refuse(t, r, dir)

			other := drivertest.Mutex("other", time.Hour)
			_, acquire := s.Acquire(t.Context(), other)
			for call, err := range map[string]error{
				"acquire": acquire,
				"renew":   drivertest.RenewOne(t.Context(), s, m).Err,
				"release": s.Release(t.Context(), m),
			} {
				if err == nil || driver.Certain(err) || !strings.Contains(err.Error(), c.word) {
					t.Errorf("%s: %v, want an unknown %s", call, err, c.word)
				}
			}
			repair()
			soon(t, "it is there again", func() bool { return drivertest.RenewOne(t.Context(), s, m).Err == nil })
			if err := s.Release(t.Context(), other); !errors.Is(err, driver.ErrNotHeld) {
				t.Errorf("an acquire that was refused left %v", err)
			}
			drivertest.MustRelease(t, s, m)
		})
	}
}

// A server that asks for a password all of a sudden won't give in to asking
// again: the next call after the connection was lost says so.
func TestPasswordThatCameLaterIsRejected(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	do(t, r, "CONFIG", "SET", "requirepass", "secret")
	conn, err := r.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, args := range [][]any{{"AUTH", "secret"}, {"CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal"}} {
		if _, err := conn.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(patience); !errors.Is(err, driver.ErrRejected); {
		if _, err = s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)); time.Now().After(end) {
			t.Fatalf("the call is not rejected: %v", err)
		}
	}
	if !strings.Contains(err.Error(), "password") {
		t.Errorf("the error does not say what is missing: %v", err)
	}
}
