package mutants_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit bounds one run of one law's tests, which take well under a second; it
// is shorter for those that are known to hang.
const (
	limit     = 60 * time.Second
	hangLimit = 10 * time.Second
)

// atOnce is how many mutants are built and run side by side.
const atOnce = 2

func TestMutants(t *testing.T) {
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "TestMutants") {
		t.Skip("takes minutes: ask for it with -run TestMutants")
	}
	todo := choose(t, os.Getenv("DIBS_MUTANTS"))
	dir := root(t)
	control(t, dir, todo)
	if t.Failed() {
		return
	}
	var (
		mu     sync.Mutex // guards caught
		caught int
		wg     sync.WaitGroup
		queue  = make(chan mutant)
	)
	for range atOnce {
		wg.Go(func() { // ends with the queue
			for m := range queue {
				start := time.Now()
				err := m.hunt(t.Context(), dir, t.TempDir())
				mu.Lock()
				if err == nil {
					caught++
					t.Logf("caught (%.1fs): %s", time.Since(start).Seconds(), m)
				} else {
					t.Errorf("%s: %v", m, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range todo {
		queue <- m
	}
	close(queue)
	wg.Wait()
	t.Logf("mutants: %d of %d caught, of %d in the table", caught, len(todo), len(mutants))
}

// choose returns every row for "all", the rows that match a regexp, or for ""
// the first that breaks each law in the store and the first that does in the
// core: a hundred rows, in a third of the time.
func choose(t *testing.T, choice string) (todo []mutant) {
	t.Helper()
	switch choice {
	case "all":
		return mutants
	case "":
		for _, list := range [][]mutant{storeMutants, coreMutants, primMutants} {
			seen := make(map[int]bool)
			for _, m := range list {
				if !seen[m.law] {
					seen[m.law] = true
					todo = append(todo, m)
				}
			}
		}
		return todo
	}
	chosen, err := regexp.Compile(choice)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if chosen.MatchString(m.String()) {
			todo = append(todo, m)
		}
	}
	if len(todo) == 0 {
		t.Fatalf("DIBS_MUTANTS=%s chooses no mutant", choice)
	}
	return todo
}

// control runs the tests that hunt, once each, on the code as it is: they must
// exist and pass.
func control(t *testing.T, dir string, todo []mutant) {
	t.Helper()
	bins := make(map[string]string)
	done := make(map[[2]string]bool)
	for _, m := range todo {
		key := [2]string{m.target(), m.tests()}
		if done[key] {
			continue
		}
		done[key] = true
		bin := bins[m.target()]
		if bin == "" {
			bin = filepath.Join(t.TempDir(), "control.test")
			if out, err := build(t.Context(), dir, bin, m.target(), ""); err != nil {
				t.Fatalf("control: building %s: %v\n%s", m.target(), err, out)
			}
			bins[m.target()] = bin
		}
		out, err := run(t.Context(), dir, bin, m)
		switch {
		case err != nil:
			t.Errorf("control: %s fails without a mutant: %v\n%s", m.tests(), err, tail(out))
		case !bytes.Contains(out, []byte("--- PASS: "+m.deepest())):
			t.Errorf("control: no test ran and passed for %s\n%s", m, tail(out))
		}
	}
}

// deepest is how the names of the tests that must notice begin.
func (m mutant) deepest() string {
	name := strings.NewReplacer("^", "", "$", "").Replace(m.tests())
	if i := strings.IndexAny(name, "(|[.*+?"); i >= 0 {
		name = name[:i]
	}
	return name
}

// hunt builds m and returns nil if its tests notice it.
func (m mutant) hunt(ctx context.Context, dir, tmp string) error {
	broken, err := m.overlay(dir)
	if err != nil {
		return err
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for path, text := range broken {
		file := filepath.Join(tmp, fmt.Sprintf("%d.go", len(overlay.Replace)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		overlay.Replace[path] = file
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	list := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return err
	}
	bin := filepath.Join(tmp, "mutant.test")
	if out, err := build(ctx, dir, bin, m.target(), list); err != nil {
		return fmt.Errorf("does not build: %w\n%s", err, out)
	}
	out, err := run(ctx, dir, bin, m)
	var failed *exec.ExitError
	switch hung := bytes.Contains(out, []byte("test timed out")) || bytes.Contains(out, []byte("deadlock: ")); {
	case err == nil:
		return errors.New("SURVIVED")
	case !errors.As(err, &failed) || !failed.Exited():
		return fmt.Errorf("did not run: %w", err)
	case hung && !m.hangs:
		return fmt.Errorf("made its test hang, which the row does not say\n%s", tail(out))
	}
	return nil
}

// build makes the test binary of pkg.
func build(ctx context.Context, dir, bin, pkg, overlay string) ([]byte, error) {
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", bin}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// run runs the tests of m in bin, where go test would.
func run(ctx context.Context, dir, bin string, m mutant) ([]byte, error) {
	timeout := limit
	if m.hangs {
		timeout = hangLimit
	}
	cmd := exec.CommandContext(ctx, bin, "-test.v", "-test.timeout", timeout.String(), "-test.run", m.tests())
	cmd.Dir = filepath.Join(dir, m.target())
	return cmd.CombinedOutput()
}

// tail is the end of out.
func tail(out []byte) []byte {
	const most = 4 << 10
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}
