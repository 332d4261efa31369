package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/schedule"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func ticks(t *testing.T, loc *time.Location, from, to time.Time, expressions ...string) []time.Time {
	t.Helper()
	s, err := schedule.New("job", expressions, loc, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []time.Time
	for at := s.Next(from.Add(-1)); at.Before(to); at = s.Next(at) {
		if len(all) > 0 && !at.After(all[len(all)-1]) {
			t.Fatalf("%v follows %v", at, all[len(all)-1])
		}
		all = append(all, at)
	}
	return all
}

// TestEachWallClockJobRunsOnceADay walks through the days on which clocks change.
func TestEachWallClockJobRunsOnceADay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone     string
		from, to string
	}{
		{"Europe/Berlin", "2026-01-01", "2027-01-01"},
		{"Australia/Lord_Howe", "2026-01-01", "2027-01-01"},
		{"America/Sao_Paulo", "2018-10-01", "2018-12-01"},
		{"Asia/Kathmandu", "2026-03-01", "2026-04-01"},
	} {
		for _, expression := range []string{"0 0 * * *", "30 0 * * *", "45 1 * * *", "0 2 * * *", "15 2 * * *", "30 2 * * *", "59 2 * * *", "0 3 * * *", "0 12 * * *", "59 23 * * *", "@daily"} {
			t.Run(tt.zone+" "+expression, func(t *testing.T) {
				t.Parallel()
				loc := zone(t, tt.zone)
				from, _ := time.ParseInLocation(time.DateOnly, tt.from, loc)
				to, _ := time.ParseInLocation(time.DateOnly, tt.to, loc)
				days := make(map[string]int)
				for _, at := range ticks(t, loc, from, to, expression) {
					days[at.In(loc).Format(time.DateOnly)]++
				}
				for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
					if n := days[day.Format(time.DateOnly)]; n != 1 {
						t.Errorf("on %s it is due %d times", day.Format(time.DateOnly), n)
					}
				}
			})
		}
	}
}

func TestTimesThatTheClocksLeaveOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, expression, after, want string
	}{
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"},
		{"UTC", "0 0 1 * MON", "2026-06-02T00:00:00Z", "2026-06-08T00:00:00Z"}, // either day, as cron has it
	} {
		loc := zone(t, tt.zone)
		s, err := schedule.New("job", []string{tt.expression}, loc, 0)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := time.Parse(time.RFC3339, tt.after)
		if got := s.Next(after).UTC().Format(time.RFC3339); got != tt.want {
			t.Errorf("%s %q after %s: %s, want %s", tt.zone, tt.expression, tt.after, got, tt.want)
		}
	}
}

// TestEveryHourGoesByElapsedTime: a job of every five minutes runs in both of the
// hours that have one name.
func TestEveryHourGoesByElapsedTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "Australia/Lord_Howe"} {
		loc := zone(t, name)
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
		var last time.Time
		for _, at := range ticks(t, loc, from, from.AddDate(1, 0, 0), "*/5 * * * *") {
			if !last.IsZero() && at.Sub(last) != 5*time.Minute {
				t.Fatalf("%s: %v after %v", name, at, last)
			}
			last = at
		}
	}
}

func TestEveryHasTheSameTicksEverywhere(t *testing.T) {
	t.Parallel()
	s, err := schedule.New("job", []string{"@every 7s"}, time.UTC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := time.Date(2026, 6, 1, 12, 0, 0, 1, time.UTC)
	for i := range 7000 {
		if got, want := s.Next(a.Add(time.Duration(i)*time.Millisecond)), s.Next(a); i < 1000 && !got.Equal(want) && !got.Equal(want.Add(7*time.Second)) {
			t.Fatalf("%v, %v", got, want)
		}
	}
	if got := s.Next(s.Next(a)).Sub(s.Next(a)); got != 7*time.Second {
		t.Errorf("the ticks are %v apart", got)
	}
}

func TestJitterIsTheSameOnEveryInstance(t *testing.T) {
	t.Parallel()
	one, _ := schedule.New("job", []string{"@hourly"}, time.UTC, time.Minute)
	two, _ := schedule.New("job", []string{"@hourly"}, time.UTC, time.Minute)
	other, _ := schedule.New("other", []string{"@hourly"}, time.UTC, time.Minute)
	at, differ := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), false
	for range 48 {
		at = one.Next(at)
		due := one.Due(at)
		if !due.Equal(two.Due(at)) || due.Before(at) || !due.Before(at.Add(time.Minute)) {
			t.Fatalf("the tick %v is due at %v, and elsewhere at %v", at, due, two.Due(at))
		}
		differ = differ || !due.Equal(other.Due(at))
	}
	if !differ {
		t.Error("two jobs have the same jitter at every tick")
	}
}

func TestWhatIsNoSchedule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "* * * *", "* * * * * *", "61 * * * *", "@every -5m", "@every 10ms", "@every", "@sometimes", "TZ=UTC 0 0 * * *", "0 0 30 2 *"} {
		if _, err := schedule.New("job", []string{text}, time.UTC, 0); err == nil || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
