//go:build unix

package servers

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// An account is the user that a server runs as which refuses to run as root; nil:
// the one that runs the test.
type account struct{ uid, gid int }

// accountNamed returns the account called name if the test runs as root.
func accountNamed(name string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("servers: root can't run the server, so somebody else has to: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return &account{uid, gid}, errors.Join(err1, err2)
}

// attr has a child run as the account.
func (a *account) attr(s *syscall.SysProcAttr) {
	if a != nil {
		s.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// give makes dir the account's, and lets it in: a test's directory lies in one
// that only its owner may enter.
func (a *account) give(dir string) error {
	if a == nil {
		return nil
	}
	return errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Chown(dir, a.uid, a.gid))
}
