package sqlitelock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	dir := mountTmpfs(t, "size=256k")
	path := filepath.Join(dir, "locks.db")
	s := openStore(t, path, nil)
	held, err := s.Acquire(t.Context(), mutex("held", "1"))
	must(t, err)
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	var full error
	for i := 0; full == nil && i < 100; i++ {
		c := mutex("n"+strings.Repeat("x", 400+i), "1")
		c.Note = strings.Repeat("y", driver.MaxNote)
		_, full = s.Acquire(t.Context(), c)
	}
	if full == nil || driver.Certain(full) || !strings.Contains(full.Error(), "full") {
		t.Fatalf("on a full disk: %v", full)
	}
	if _, err := sqlitelock.Open(t.Context(), filepath.Join(dir, "new.db"), nil); err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "full") {
		t.Errorf("open on a full disk: %v", err)
	}
	must(t, os.Remove(filler))
	c := mutex("held", "1")
	c.Token = held.Token
	ps, err := s.Renew(t.Context(), []driver.Claim{c})
	if err != nil || ps[0].Err != nil {
		t.Fatalf("after the disk was full: %+v, %v", ps, err)
	}
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func TestAReadOnlyFileSystemIsRejected(t *testing.T) {
	t.Parallel()
	dir := mountTmpfs(t, "size=1m")
	path := filepath.Join(dir, "locks.db")
	must(t, openStore(t, path, nil).Close())
	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, path := range []string{path, filepath.Join(dir, "new.db")} {
		_, err := sqlitelock.Open(t.Context(), path, nil)
		if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
		t.Log(err)
	}
}

// mountTmpfs returns a small file system of the test's own.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestOneUserCantOpenAnothersFile(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to be two users")
	}
	path := dbPath(t)
	must(t, openStore(t, path, nil).Close())
	for dir := filepath.Dir(path); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	exe, err := os.Executable()
	must(t, err)
	public := filepath.Join(t.TempDir(), "exe")
	// By another process: a child that another test starts now would inherit a
	// descriptor that writes to it, and it could not be run.
	must(t, exec.Command("install", "-m", "755", exe, public).Run())
	for dir := filepath.Dir(public); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	for _, path := range []string{path, filepath.Join(filepath.Dir(path), "new.db")} {
		cmd := exec.Command(public, path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		p := startCommand(t, "open", cmd)
		if said := p.says(t, "error:"); !strings.HasPrefix(said, "rejected:") || !strings.Contains(said, path) {
			t.Errorf("said %q", said)
		}
	}
}
