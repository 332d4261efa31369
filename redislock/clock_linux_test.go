package redislock_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// steppable starts a server whose clock step moves.
func steppable(t *testing.T) (r *servers.RedisServer, step func(to time.Duration)) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal("gcc is not installed; install it with\n\n\tapt-get install -y gcc libc6-dev")
	}
	dir := t.TempDir()
	lib, file := filepath.Join(dir, "clock.so"), filepath.Join(dir, "offset")
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", lib, "testdata/clock.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	step = func(to time.Duration) {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(binary.NativeEndian.AppendUint64(nil, uint64(int64(to/time.Second)))); err != nil {
			t.Fatal(err)
		}
	}
	step(0)
	return servers.Redis(t, servers.RedisEnv("LD_PRELOAD="+lib, "DIBS_CLOCK="+file)), step
}

// A step of the server's clock ends claims early, and their holders are told, or
// late; the tokens grow in either case, and back again.
func TestServerClockSteps(t *testing.T) {
	for _, plain := range []string{"layout=line", "layout=plain"} {
		t.Run(plain, func(t *testing.T) {
			t.Parallel()
			r, step := steppable(t)
			s := open(t, r.Addr(), plain)
			var not *driver.NotHeldError

			first, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
			step(time.Hour)
			if p := drivertest.RenewOne(t.Context(), s, first); !errors.As(p.Err, &not) {
				t.Fatalf("an hour later: %v", p.Err)
			}
			second, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
			if second.Token <= first.Token {
				t.Errorf("token %d after %d", second.Token, first.Token)
			}
			step(0)
			if p := drivertest.RenewOne(t.Context(), s, second); p.Err != nil {
				t.Errorf("the clock went back: %v", p.Err)
			}
			drivertest.MustRelease(t, s, second)
			step(-time.Hour)
			third, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
			if third.Token != second.Token+1 {
				t.Errorf("token %d after %d, with the clock behind", third.Token, second.Token)
			}
			step(0)
			if p := drivertest.RenewOne(t.Context(), s, third); !errors.As(p.Err, &not) {
				t.Errorf("an hour later: %v", p.Err)
			}
		})
	}
}
