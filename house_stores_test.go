package dibs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryStoreRunsTheSuite: who registers a driver has a test that runs all laws,
// and with them every primitive, on it. Of each opener one scheme at least must be
// named in a test file that calls drivertest.Run: as the harness's name or at the
// head of a URL.
func TestEveryStoreRunsTheSuite(t *testing.T) {
	openers := make(map[string]map[string][]string) // the schemes, by package and opener
	named := make(map[string][]string)              // the strings of the files that run the suite, by package
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			if len(callsOf(file, "drivertest", "Run")) > 0 {
				named[pkg] = append(named[pkg], literals(file)...)
			}
			return nil
		}
		for _, decl := range file.Decls {
			for _, call := range callsOf(decl, "driver", "Register") {
				schemes := literals(call.Args[0])
				if schemes == nil { // a variable: of a list in the same func
					schemes = literals(decl)
				}
				opener := path
				if id, ok := call.Args[1].(*ast.Ident); ok {
					opener = id.Name
				}
				if openers[pkg] == nil {
					openers[pkg] = make(map[string][]string)
				}
				openers[pkg][opener] = append(openers[pkg][opener], schemes...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(openers) == 0 {
		t.Fatal("nobody registers a driver")
	}
	for _, pkg := range slices.Sorted(maps.Keys(openers)) {
		for opener, schemes := range openers[pkg] {
			if !slices.ContainsFunc(named[pkg], func(text string) bool {
				return slices.ContainsFunc(schemes, func(s string) bool { return text == s || strings.HasPrefix(text, s+"://") })
			}) {
				t.Errorf("%s registers %s for %q: no test file there that calls drivertest.Run names one of them", pkg, opener, schemes)
			}
		}
	}
}

// callsOf lists the calls of pkg.name below n.
func callsOf(n ast.Node, pkg, name string) (calls []*ast.CallExpr) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg {
					calls = append(calls, call)
				}
			}
		}
		return true
	})
	return calls
}

// literals lists the strings below n.
func literals(n ast.Node) (texts []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}
