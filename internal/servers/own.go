package servers

import "testing"

// ender is a server, or a set of them, of any kind.
type ender interface {
	end() error
	report() string
}

// own starts a server that ends with the test. It fails the test if the server
// doesn't start or can't be ended, and shows what the server printed if the
// test failed for whatever reason.
func own[S ender](t testing.TB, launch func(dir string) (S, error)) S {
	t.Helper()
	s, err := launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keep(t, s)
	return s
}

// keep ends the server when the test ends: before its directory is removed, if
// that is one of t.TempDir.
func keep(t testing.TB, s ender) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.report())
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}
