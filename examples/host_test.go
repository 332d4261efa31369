package examples_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A host is where instances run side by side: they share a store of locks, in
// SQLite, and the files in dir.
type host struct{ dir string }

func newHost(t *testing.T) host { return host{t.TempDir()} }

func (h host) path(name string) string { return filepath.Join(h.dir, name) }

// lines are those of a file.
func (h host) lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(h.path(name))
	must(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// An instance is a program that runs.
type instance struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	log   *bytes.Buffer
}

// start starts an instance that ends with the test.
func (h host) start(t *testing.T, name string, args ...string) *instance {
	t.Helper()
	i := &instance{name: name, log: new(bytes.Buffer)}
	i.cmd = exec.Command(filepath.Join(programs, name), args...)
	i.cmd.Env = append(os.Environ(), "DIBS_STORE_URL=sqlite://"+h.path("locks.db"))
	i.cmd.Stderr = i.log
	stdin, err := i.cmd.StdinPipe()
	must(t, err)
	stdout, err := i.cmd.StdoutPipe()
	must(t, err)
	i.stdin, i.out = stdin, bufio.NewReader(stdout)
	must(t, i.cmd.Start())
	t.Cleanup(func() {
		i.cmd.Process.Kill()
		i.cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", name, i.log)
		}
	})
	return i
}

// line is the next line that the instance prints.
func (i *instance) line(t *testing.T) string {
	t.Helper()
	line, err := i.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", i.name, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// end ends the instance's input, and returns what else it prints until its end.
func (i *instance) end(t *testing.T) string {
	t.Helper()
	i.stdin.Close()
	said, err := io.ReadAll(i.out)
	if err != nil {
		t.Error(err)
	}
	if err := i.cmd.Wait(); err != nil {
		t.Errorf("%s: %v: %s", i.name, err, i.log)
	}
	return string(said)
}

// run runs an instance to its end, and returns what it printed.
func (h host) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return h.start(t, name, args...).end(t)
}

// together does something n times side by side.
func together(n int, do func(i int) string) []string {
	said := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { said[i] = do(i) })
	}
	wg.Wait()
	return said
}

// count counts the texts that begin so.
func count(texts []string, prefix string) (n int) {
	for _, text := range texts {
		if strings.HasPrefix(text, prefix) {
			n++
		}
	}
	return n
}
