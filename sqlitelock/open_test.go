package sqlitelock_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/sqlitelock"
)

func TestWhatIsNoLockFileIsRejectedUnchanged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, "is a directory"},
		{"fifo", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "is a FIFO"},
		{"socket", func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			must(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}, "is a socket"},
		{"device", func(t *testing.T, path string) { must(t, os.Symlink("/dev/null", path)) }, "is a device"},
		{"text", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600))
		}, "not a SQLite database"},
		{"short text", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("hello\n"), 0o600)) }, "not a SQLite database"},
		{"foreign", func(t *testing.T, path string) { execSQL(t, path, "CREATE TABLE mine (x)") }, "another program's database"},
		{"marked", func(t *testing.T, path string) { execSQL(t, path, "PRAGMA application_id = 7") }, "another program's database"},
		{"newer", func(t *testing.T, path string) {
			must(t, openStore(t, path, nil).Close())
			execSQL(t, path, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)")
		}, "a newer dibs made it (schema 99"},
		{"link loop", func(t *testing.T, path string) { must(t, os.Symlink(path, path)) }, "too many"},
		{"dangling link", func(t *testing.T, path string) { must(t, os.Symlink(path+".gone", path)) }, "symbolic link to nothing"},
		{"hard link", func(t *testing.T, path string) {
			must(t, openStore(t, path, nil).Close())
			must(t, os.Link(path, path+".2"))
		}, "hard links"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := dbPath(t)
			test.make(t, path)
			before := snapshot(t, path)
			_, err := sqlitelock.Open(t.Context(), path, nil)
			if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want a rejection that says %q", err, test.want)
			}
			if after := snapshot(t, path); after != before {
				t.Errorf("it was changed: %s, then %s", before, after)
			}
		})
	}
}

// snapshot is what is in path's directory, and the bytes of path.
func snapshot(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(fs.FormatDirEntry(e) + " ")
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), "-shm") {
			content, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
			must(t, err)
			b.WriteString(string(bytes.TrimRight(content, "\x00")))
		}
	}
	return b.String()
}

func TestAMissingDirectoryIsNotMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sub")
	_, err := sqlitelock.Open(t.Context(), filepath.Join(dir, "locks.db"), nil)
	if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

func TestURLs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, test := range []struct{ url, want string }{
		{"sqlite://" + dir + "/a.db", ""},
		{"sqlite://" + dir + "/a.db?journal=on", ""},
		{"sqlite:" + dir + "/a.db?force=yes", ""},
		{"sqlite:rel.db", ""},
		{"sqlite:./rel%20with%20%3F%23%25.db", ""},
		{"sqlite://" + dir + "/a.db?jurnal=on", `unknown parameter "jurnal"`},
		{"sqlite://" + dir + "/a.db?journal=maybe", "want one of off, on"},
		{"sqlite://" + dir + "/a.db?journal=on&journal=off", "2 times"},
		{"sqlite://rel/x.db", "has a host (rel)"},
		{"sqlite:", "names no file"},
		{"sqlite://" + dir + "/", "names no file"},
		{"sqlite::memory:", "mem://"},
		{"sqlite://" + dir + "/a.db#x", "fragment"},
		{"sqlite:%00", "NUL"},
	} {
		s, err := driver.Open(t.Context(), test.url)
		switch {
		case test.want != "" && (!errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.url, err, test.want)
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.url, err)
		}
		if s != nil {
			must(t, s.Close())
		}
	}
	if _, err := os.Stat("rel with ?#%.db"); err != nil {
		t.Error(err)
	}
}

func TestADamagedFileIsRejected(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	s := openStore(t, path, nil)
	for i := range 200 {
		c := mutex("n"+strings.Repeat("x", i), "1")
		if _, err := s.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size())-8192), 8192)
	must(t, err)
	must(t, f.Close())
	s, err = sqlitelock.Open(t.Context(), path, nil)
	if err == nil {
		defer s.Close()
		_, err = s.Acquire(t.Context(), mutex("nxxx", "2"))
	}
	if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestARemovedFileIsNoticed(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	a := openStore(t, path, nil)
	if _, err := a.Acquire(t.Context(), mutex("n", "1")); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, os.Remove(path+suffix))
	}
	b := openStore(t, path, nil)
	if _, err := b.Acquire(t.Context(), mutex("n", "2")); err != nil {
		t.Fatal(err)
	}
	_, err := a.Acquire(t.Context(), mutex("m", "3"))
	if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("got %v", err)
	}
}

func TestABusyFileIsUnknownNotHeld(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	s := openStore(t, path, nil)
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	other, err := db.Conn(t.Context())
	must(t, err)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = s.Acquire(ctx, mutex("n", "1"))
	if err == nil || driver.Certain(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(begin); d > time.Second {
		t.Errorf("took %v", d)
	}
	for _, err := range s.List(t.Context(), "") {
		t.Errorf("readers need no write lock: %v", err)
	}
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	must(t, err)
	must(t, other.Close())
	if _, err := s.Acquire(t.Context(), mutex("n", "2")); err != nil {
		t.Errorf("the dropped ask was made after all: %v", err)
	}
}

func execSQL(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(t.Context(), query)
	must(t, err)
	must(t, db.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
