package telemetry_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/telemetry"
	"github.com/dibslock/dibs/memlock"
)

// series returns the names and the number of all series.
func series(t *testing.T, m *telemetry.Metrics) (names []string, n int) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names = append(names, f.GetName())
		n += len(f.GetMetric())
	}
	return names, n
}

// TestSeriesDontGrowWithKeys over ten thousand of them.
func TestSeriesDontGrowWithKeys(t *testing.T) {
	t.Parallel()
	m := telemetry.New("mem")
	c, err := dibs.New(memlock.New(memlock.Options{}), &dibs.Options{Hooks: m.Hooks()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	lock := func(i int) {
		lease, err := c.Mutex(fmt.Sprint("key ", i)).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex(fmt.Sprint("key ", i)).TryLock(t.Context()); err == nil {
			t.Fatal("locked twice")
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lock(0)
	_, before := series(t, m)
	for i := range 10_000 {
		lock(i)
	}
	if _, after := series(t, m); after != before {
		t.Errorf("%d series became %d", before, after)
	}
	families, _ := m.Registry().Gather()
	for _, f := range families {
		if f.GetName() == "dibs_locks_held" && f.GetMetric()[0].GetGauge().GetValue() != 0 {
			t.Errorf("%v", f)
		}
		if f.GetName() == "dibs_lock_hold_seconds" && f.GetMetric()[0].GetHistogram().GetSampleCount() != 10_001 {
			t.Errorf("%v", f)
		}
	}
}

// TestRulesFire when they should, and not otherwise.
func TestRulesFire(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("promtool", "test", "rules", "../../../deploy/prometheus/tests.yml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v (is promtool not installed? run scripts/servers.sh)\n%s", err, out)
	}
}

// TestRulesNameWhatIsThere: an alert on a metric that nobody counts never fires.
func TestRulesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	m := telemetry.New("mem")
	m.Up(func() error { return nil })
	o, h := m.Observer(), m.Hooks()
	o.Ended("a", book.Succeeded, time.Second)
	o.Skipped("a", "held")
	o.Limited("a")
	o.Next("a", time.Now())
	h.Renewed(dibs.RenewInfo{})
	c, err := dibs.New(memlock.New(memlock.Options{}), &dibs.Options{Hooks: h})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Mutex("a").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil { // the lease is lost
		t.Fatal(err)
	}
	names, _ := series(t, m)
	rules, err := os.ReadFile("../../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`dibs_[a-z_]+`).FindAllString(string(rules), -1)
	if len(found) < 10 {
		t.Fatalf("the rules name %v", found)
	}
	for _, name := range found {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !slices.Contains(names, name) && !slices.Contains(names, base) {
			t.Errorf("the rules name %s, which nobody counts", name)
		}
	}
}
