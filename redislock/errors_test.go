package redislock_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

func TestErrorRepliesAreClassed(t *testing.T) {
	for text, certain := range map[string]bool{
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                       true,
		"NOAUTH Authentication required.":                                                                         true,
		"WRONGPASS invalid username-password pair or user is disabled.":                                           true,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                        true,
		"ERR The user executing the script can't run this command or subcommand script: 3dbf, on @user_script:6.": true,
		"ACL failure in script: The user locker has no permissions to run the 'get' command":                      true,
		"FOREIGN the key x is held by another program":                                                            true,
		"MOVED 3999 127.0.0.1:6381":                                                                               true,
		"CROSSSLOT Keys in request don't hash to the same slot":                                                   true,
		"ERR unknown command 'EVALSHA', with args beginning with: ":                                               true,
		"unknown command 'EVALSHA', with args beginning with: ":                                                   true, // as the client tells it
		"DB index is out of range":                                                                                true,
		"SELECT is not allowed in cluster mode":                                                                   true,
		"This instance has cluster support disabled":                                                              true,
		"max number of clients reached":                                                                           false,
		"READONLY You can't write against a read only replica.":                                                   false,
		"LOADING Redis is loading the dataset in memory":                                                          false,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                 false,
		"MISCONF Redis is configured to save RDB snapshots":                                                       false,
		"BUSY Redis is busy running a script.":                                                                    false,
		"NOREPLICAS Not enough good replicas to write.":                                                           false,
		"MASTERDOWN Link with MASTER is down":                                                                     false,
		"CLUSTERDOWN Hash slot not served":                                                                        false,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                 false,
		"ASK 3999 127.0.0.1:6381":                                                                                 false,
		"NOSCRIPT No matching script.":                                                                            false,
		"ERR something new":                                                                                       false,
		"":                                                                                                        false,
	} {
		err := redislock.Reply(text)
		switch {
		case certain && !errors.Is(err, driver.ErrRejected):
			t.Errorf("%q: %v is not ErrRejected", text, err)
		case !certain && driver.Certain(err):
			t.Errorf("%q: %v is certain", text, err)
		case errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNotHeld):
			t.Errorf("%q: %v tells of another holder", text, err)
		}
	}
}

// What a user may not do in a script is denied as what it may not do at all: nobody
// waits for it.
func TestWhatScriptsMayNotDoIsDenied(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	c := drivertest.Mutex("name", time.Minute)
	for _, command := range []string{"get", "set", "time", "evalsha"} {
		do(t, r, "ACL", "SETUSER", "locker", "reset", "on", ">secret", "~*", "&*", "+@all", "-"+command)
		s := openURL(t, "redis://locker:secret@"+r.Addr())
		_, err := s.Acquire(t.Context(), c)
		if command == "get" && err == nil { // it takes none
			err = s.Release(t.Context(), c)
		}
		if !errors.Is(err, driver.ErrRejected) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("without %s: %v", command, err)
		}
	}
}
