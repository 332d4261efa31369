package sqlitelock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

func TestKilledHolderLetsAWaiterInAtOnce(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	p := start(t, "hold", path, "n", "1h")
	p.says(t, "held")
	s := openStore(t, path, nil)
	c := mutex("n", "waiter")
	c.Patience = time.Minute
	signals, stop, err := s.Watch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a held name: %v", err)
	}
	p.signal(t, syscall.SIGKILL)
	begin := time.Now()
	select {
	case sig := <-signals:
		if sig.Grant == nil || !sig.Grant.TookOver {
			t.Fatalf("signal %+v", sig)
		}
	case <-time.After(10 * time.Second): // the TTL is an hour
		t.Fatal("not told of the death")
	}
	t.Logf("told after %v", time.Since(begin))
	if g, err := s.Acquire(t.Context(), c); err != nil || !g.TookOver {
		t.Fatalf("%+v, %v", g, err)
	}
}

func TestKilledHolderIsFoundByTheNextToAsk(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	s := openStore(t, path, nil)
	for range 3 {
		p := start(t, "hold", path, "n", "1h")
		p.says(t, "held")
		c := mutex("n", "next")
		if _, err := s.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
			t.Fatalf("a held name: %v", err)
		}
		p.signal(t, syscall.SIGKILL)
		_ = p.cmd.Wait()
		g, err := s.Acquire(t.Context(), c)
		if err != nil || !g.TookOver {
			t.Fatalf("%+v, %v", g, err)
		}
		if err := s.Release(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(path + "-life/*")
		if err == nil && len(files) == 1 { // our own
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the life files of the dead are left: %v, %v", files, err)
		}
	}
}

func TestStoppedHolderKeepsItsClaim(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	p := start(t, "hold", path, "n", "1h")
	p.says(t, "held")
	p.signal(t, syscall.SIGSTOP)
	s := openStore(t, path, nil)
	for range 3 {
		if _, err := s.Acquire(t.Context(), mutex("n", "x")); !errors.Is(err, driver.ErrHeld) {
			t.Fatalf("a stopped holder's name: %v", err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func TestClosedHolderIsNotDead(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	const ttl = 6 * time.Second
	p := start(t, "hold", path, "n", ttl.String())
	p.says(t, "held")
	begin := time.Now()
	_ = p.stdin.Close() // it closes its store and exits, and does not release
	_ = p.cmd.Wait()
	s := openStore(t, path, nil)
	var held *driver.HeldError
	_, err := s.Acquire(t.Context(), mutex("n", "x"))
	if time.Since(begin) > ttl {
		t.Skip("the machine is too slow")
	}
	if !errors.As(err, &held) {
		t.Fatalf("a closed client's name, after %v: %v", time.Since(begin), err)
	}
	time.Sleep(held.RetryAfter)
	if _, err := s.Acquire(t.Context(), mutex("n", "x")); err != nil {
		t.Fatal(err)
	}
}

func TestReplacedLifeFileProvesNothing(t *testing.T) {
	t.Parallel()
	for _, replace := range []bool{false, true} {
		path := dbPath(t)
		a, b := openStore(t, path, nil), openStore(t, path, nil)
		if _, err := a.Acquire(t.Context(), mutex("n", "1")); err != nil {
			t.Fatal(err)
		}
		f, err := a.LifeFile()
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(path + "-life/*")
		if err != nil || len(files) != 1 {
			t.Fatalf("life files: %v, %v", files, err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := os.WriteFile(files[0], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Acquire(t.Context(), mutex("n", "2")); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("replaced %t: %v", replace, err)
		}
		_ = f
	}
}

func TestChildThatInheritsTheLifeFileKeepsTheClaim(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	p := start(t, "inherit", path, "n")
	child, err := strconv.Atoi(p.says(t, "held"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	p.signal(t, syscall.SIGKILL)
	_ = p.cmd.Wait()
	s := openStore(t, path, nil)
	if _, err := s.Acquire(t.Context(), mutex("n", "x")); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("while the child lives: %v", err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := s.Acquire(t.Context(), mutex("n", "x"))
		if err == nil {
			return
		}
		if !errors.Is(err, driver.ErrHeld) || time.Now().After(end) {
			t.Fatalf("after the child: %v", err)
		}
	}
}

func TestChildDoesNotInheritByItself(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	p := start(t, "disinherit", path, "n")
	child, err := strconv.Atoi(p.says(t, "held"))
	must(t, err)
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	p.signal(t, syscall.SIGKILL)
	_ = p.cmd.Wait()
	s := openStore(t, path, nil)
	if _, err := s.Acquire(t.Context(), mutex("n", "x")); err != nil {
		t.Error(err)
	}
}

func TestProcessesExcludeEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(fastDir(t), "locks.db")
	var ps []*process
	begin := time.Now()
	for range 8 { // which also race to make the file
		ps = append(ps, start(t, "contend", path, "n", filepath.Join(filepath.Dir(path), "witness")))
	}
	for _, p := range ps {
		p.says(t, "done")
		if err := p.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("8 x 50 turns in %v", time.Since(begin))
	s := openStore(t, path, nil)
	for h, err := range s.List(t.Context(), "") {
		t.Errorf("left: %+v, %v", h, err)
	}
	if files, _ := filepath.Glob(path + "-life/*"); len(files) != 0 {
		t.Errorf("life files are left: %v", files)
	}
}

func TestProcessesRaceToMakeTheFile(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := dbPath(t)
		var ps []*process
		for range 6 {
			ps = append(ps, start(t, "open", path))
		}
		for _, p := range ps {
			if p.lines.Scan() {
				t.Errorf("said %q", p.lines.Text())
			}
			if err := p.cmd.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
	}
}

func TestTimeNamespaceSharesTheClock(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Minute
	if err := exec.Command("unshare", "--time", "--boottime", "86400", "--fork", "true").Run(); err != nil {
		t.Skipf("unshare --time: %v", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := dbPath(t)
	begin := time.Now()
	p := startCommand(t, "hold", exec.Command("unshare", "--time", "--boottime", "86400", "--fork", "--kill-child", exe, path, "n", ttl.String()))
	p.says(t, "held")
	s := openStore(t, path, nil)
	var held *driver.HeldError
	if _, err := s.Acquire(t.Context(), mutex("n", "x")); !errors.As(err, &held) {
		t.Fatal(err)
	}
	if left := ttl - time.Since(begin); held.RetryAfter > ttl || held.RetryAfter < left {
		t.Fatalf("retry after %v, want %v to %v", held.RetryAfter, left, ttl)
	}
}
