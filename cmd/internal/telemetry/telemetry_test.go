package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	promtool(t, "test", "rules", "../../../deploy/prometheus/tests.yml")
}

// counted returns the names of all metrics.
func counted(t *testing.T) []string {
	t.Helper()
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
	return names
}

// named returns the metrics that a text names, without what histograms add.
func named(text []byte) (names []string) {
	for _, name := range regexp.MustCompile(`dibs_[a-z_]+`).FindAllString(string(text), -1) {
		names = append(names, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""))
	}
	return names
}

// TestRulesNameWhatIsThere: an alert on a metric that nobody counts never fires.
func TestRulesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	names := counted(t)
	for _, file := range []string{"prometheus/rules.yml", "grafana/dibs.json"} {
		text, err := os.ReadFile("../../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := named(text)
		if len(found) < 10 {
			t.Fatalf("%s names %v", file, found)
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which nobody counts", file, name)
			}
		}
	}
}

// TestTheDashboardIsWhole: it shows every metric, each panel once, by expressions
// that Prometheus can read.
func TestTheDashboardIsWhole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/grafana/dibs.json")
	if err != nil {
		t.Fatal(err)
	}
	var dash struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dash); err != nil {
		t.Fatal(err)
	}
	if dash.UID == "" || dash.Title == "" || len(dash.Panels) < 10 {
		t.Errorf("%+v", dash)
	}
	shown := named(text)
	for _, name := range counted(t) {
		if !slices.Contains(shown, name) {
			t.Errorf("it doesn't show %s", name)
		}
	}
	rules := strings.Builder{}
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	ids, places := make(map[int]bool), make(map[[2]int]string)
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", ".*")
	for _, p := range dash.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" {
					t.Fatalf("%s is on %s", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		for i, target := range p.Targets {
			fmt.Fprintf(&rules, "{record: 'panel%d:%d', expr: '%s'},\n", p.ID, i, fill.Replace(target.Expr))
		}
	}
	rules.WriteString("]}]\n")
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestTheScrapeConfigurationIsRight by Prometheus' own tool. Without honor_labels
// the rules that go by job would find none.
func TestTheScrapeConfigurationIsRight(t *testing.T) {
	t.Parallel()
	const file = "../../../deploy/prometheus/prometheus.yml"
	promtool(t, "check", "config", file)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\n    honor_labels: true\n") {
		t.Errorf("%v: %s", err, text)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v (is promtool not installed? run scripts/servers.sh)\n%s", err, out)
	}
}
