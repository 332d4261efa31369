package servers_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dibslock/dibs/internal/servers"
)

// doomed calls f on a thread that ends soon after f returns.
func doomed(f func(tid int)) {
	done := make(chan struct{})
	// Ends when f returns. It never unlocks its thread, so the thread ends too.
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() { // the first thread never ends: keep it busy
			defer runtime.UnlockOSThread()
			doomed(f)
			return
		}
		f(syscall.Gettid())
	}()
	<-done
}

// The kernel's "kill me when my parent dies" means the parent *thread*.
func TestServerOutlivesTheThreadOfItsCaller(t *testing.T) {
	t.Parallel()
	var r *servers.RedisServer
	var thread int
	doomed(func(tid int) { r, thread = servers.Redis(t), tid })
	if t.Failed() {
		return
	}
	until(t, "end of the thread", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return os.IsNotExist(err)
	})
	want(t, r, "PONG", "PING")
}

func TestEnvironmentReachesTheServer(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t, servers.RedisEnv("LD_PRELOAD=no-such-library.so"))
	if !strings.Contains(r.Log(), "no-such-library.so") {
		t.Error("the variable didn't reach the loader of the server")
	}
}
