package runner_test

import (
	"testing"

	"github.com/dibslock/dibs/cmd/internal/runner"
)

// TestAFeedIsBounded: who doesn't look for long is told so, and what is kept for
// it doesn't grow.
func TestAFeedIsBounded(t *testing.T) {
	t.Parallel()
	f, tell, kept := runner.NewFeed()
	defer f.Close()
	tell(10)
	if events, missed := f.Next(); len(events) != 10 || missed {
		t.Errorf("%d events, missed: %v", len(events), missed)
	}
	for range 100 {
		tell(1000)
		if n := kept(); n > 10_000 {
			t.Fatalf("%d events are kept", n)
		}
	}
	if len(f.News()) != 1 {
		t.Error("there is no news")
	}
	if events, missed := f.Next(); len(events) != 0 || !missed {
		t.Errorf("%d events, missed: %v", len(events), missed)
	}
	tell(1)
	if events, missed := f.Next(); len(events) != 1 || missed {
		t.Errorf("%d events, missed: %v", len(events), missed)
	}
}
