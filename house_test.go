package dibs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dibslock/dibs"

// arrows says which packages of this repository a package may import, by path
// below the module's. Tests may import more: see testArrows.
var arrows = map[string][]string{
	"driver":                 {},
	"internal/boottime":      {},
	"internal/calls":         {},
	"internal/quick":         {},
	"internal/servers":       {},
	"":                       {"driver", "internal/boottime", "internal/calls"},
	"memlock":                {"driver"},
	"fence":                  {},
	"fencetest":              {},
	"otelhooks":              {""},
	"examples":               {},
	"examples/internal/app":  {"", "fence", "pglock", "redislock", "sqlitelock"},
	"examples/cache":         {"", "examples/internal/app"},
	"examples/leader":        {"", "examples/internal/app"},
	"examples/migrate":       {"", "examples/internal/app"},
	"examples/payment":       {"", "examples/internal/app"},
	"examples/quota":         {"", "examples/internal/app"},
	"examples/reminders":     {"", "examples/internal/app"},
	"examples/transaction":   {"", "examples/internal/app"},
	"examples/tree":          {"", "examples/internal/app"},
	"drivertest":             {"", "driver", "internal/boottime", "drivertest/judge"},
	"drivertest/judge":       {"driver"},
	"drivertest/proxy":       {},
	"drivertest/mutants":     {},
	"sqlitelock":             {"driver"},
	"redislock":              {"driver", "internal/quick", "redislock/internal/quorum"},
	"pglock":                 {"driver"},
	"cmd/dibs":               {"memlock", "pglock", "redislock", "sqlitelock", "cmd/internal/cli"},
	"cmd/internal/cli":       {"", "driver", "redislock", "cmd/internal/child", "cmd/internal/config", "cmd/internal/executor", "cmd/internal/guard", "cmd/internal/runner", "cmd/internal/schedule", "cmd/internal/telemetry", "cmd/internal/terminal", "cmd/internal/web"},
	"cmd/internal/config":    {"driver", "cmd/internal/schedule"},
	"cmd/internal/schedule":  {},
	"cmd/internal/book":      {"driver"},
	"cmd/internal/executor":  {"", "cmd/internal/child", "cmd/internal/guard"},
	"cmd/internal/telemetry": {"", "otelhooks", "cmd/internal/book", "cmd/internal/runner"},
	"cmd/internal/web":       {"", "driver", "cmd/internal/book", "cmd/internal/config", "cmd/internal/guard", "cmd/internal/runner", "cmd/internal/telemetry"},
	"cmd/internal/runner":    {"", "driver", "fence", "cmd/internal/book", "cmd/internal/config", "cmd/internal/executor", "cmd/internal/guard", "cmd/internal/schedule"},
	"cmd/internal/guard":     {"internal/boottime", "cmd/internal/child"},
	"cmd/internal/child":     {},
	"cmd/internal/terminal":  {},
	"bench":                  {"", "driver", "sqlitelock", "redislock", "pglock", "internal/servers"},
	"bench/interop":          {},

	"redislock/internal/quorum":       {},
	"redislock/internal/quorum/model": {"redislock/internal/quorum"},
}

// testArrows says what tests may import besides: the suite, the fakes and the
// servers; and nobody else may.
var testArrows = []string{"", "driver", "memlock", "drivertest", "drivertest/judge", "drivertest/proxy", "internal/servers", "internal/boottime", "internal/calls", "sqlitelock", "redislock", "pglock", "fence"}

// TestArrows keeps the house in shape: the root module imports the standard
// library only, tests included, and no package imports one above it.
func TestArrows(t *testing.T) {
	seen := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if pkg == "." {
			pkg = ""
		}
		allowed, listed := arrows[pkg]
		if !listed && !seen[pkg] {
			t.Errorf("the package %q is not in the list of arrows", pkg)
		}
		seen[pkg] = true
		if !listed {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		isTest := strings.HasSuffix(path, "_test.go")
		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			below, ours := strings.CutPrefix(name+"/", module+"/")
			below = strings.TrimSuffix(below, "/")
			switch {
			case ours && (slices.Contains(allowed, below) || below == pkg):
			case ours && isTest && (slices.Contains(testArrows, below) || strings.HasPrefix(below, pkg+"/")):
			case ours:
				t.Errorf("%s imports %s: no such arrow", path, name)
			case strings.Contains(strings.Split(name, "/")[0], ".") && inRoot(path):
				t.Errorf("%s imports %s: the root module uses the standard library only", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range arrows {
		if !seen[pkg] {
			t.Errorf("the list of arrows names %q, which is not there", pkg)
		}
	}
}

// inRoot tells whether path belongs to the root module: no folder above it has a
// go.mod of its own.
func inRoot(path string) bool {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return false
		}
	}
	return true
}
