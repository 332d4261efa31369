package mutants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dibslock/dibs/drivertest"
)

// A mutant is one way of breaking a law.
type mutant struct {
	law  int
	what string // what the broken code does
	edit        // how it is broken
	more []edit // further edits that belong to it
	pkg  string // whose test must notice; ./memlock if empty
	run  string // which test must notice: -run's argument; the law's rows of TestConformance if empty
	// hangs tells that a test that never ends, or a bubble that deadlocks, is
	// how this mutant is noticed.
	hangs bool
}

// An edit replaces the only occurrence of find in file, which is relative to
// the module's root.
type edit struct{ file, find, replace string }

// mutants is every row. Each file of rows has a list of its own.
var mutants = slices.Concat(storeMutants, coreMutants, primMutants, quorumMutants, postgresMutants)

func (m mutant) String() string { return fmt.Sprintf("L%d %s", m.law, m.what) }

func (m mutant) edits() []edit { return append([]edit{m.edit}, m.more...) }

func (m mutant) target() string {
	if m.pkg != "" {
		return m.pkg
	}
	return "./memlock"
}

func (m mutant) tests() string {
	if m.run != "" {
		return m.run
	}
	return fmt.Sprintf("^TestConformance$/^laws$/^L%d_", m.law)
}

// overlay returns the broken text of each file of m. It fails for an edit that
// does not fit the file any more.
func (m mutant) overlay(root string) (map[string]string, error) {
	broken := make(map[string]string)
	for _, e := range m.edits() {
		path := filepath.Join(root, e.file)
		text, ok := broken[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.find); n != 1 {
			return nil, fmt.Errorf("%s has %d occurrences of %q, want 1", e.file, n, e.find)
		}
		if e.find == e.replace {
			return nil, fmt.Errorf("%s: %q is replaced by itself", e.file, e.find)
		}
		broken[path] = strings.Replace(text, e.find, e.replace, 1)
	}
	return broken, nil
}

// root is the module's directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEveryLawHasAMutant(t *testing.T) {
	has := make(map[int]bool)
	for _, m := range mutants {
		has[m.law] = true
	}
	for n := 1; n <= drivertest.Laws; n++ {
		if !has[n] {
			t.Errorf("law %d has no mutant", n)
		}
	}
}

func TestNoRowIsStale(t *testing.T) {
	dir := root(t)
	seen := make(map[string]bool)
	for _, m := range mutants {
		if seen[m.String()] {
			t.Errorf("%s: twice", m)
		}
		seen[m.String()] = true
		if _, err := m.overlay(dir); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}
