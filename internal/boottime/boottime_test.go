package boottime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/internal/boottime"
)

func TestSourceMovesOn(t *testing.T) {
	now := boottime.Now()
	if now == nil {
		t.Fatal("no boot-time clock on this system")
	}
	a := now()
	time.Sleep(2 * time.Millisecond)
	if b := now(); b-a < 2*time.Millisecond {
		t.Errorf("slept 2ms, the clock moved %v", b-a)
	}
}

func TestNoSourceInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if boottime.Now() != nil {
			t.Error("real time would leak into the bubble")
		}
	})
}

func TestSwap(t *testing.T) {
	restore := boottime.Swap(func() time.Duration { return 42 })
	if got := boottime.Now()(); got != 42 {
		t.Errorf("got %v", got)
	}
	restore()
	if boottime.Now()() == 42 {
		t.Error("not restored")
	}
}
