package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibslock/dibs/cmd/internal/web"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"

	_ "github.com/dibslock/dibs/pglock"
	_ "github.com/dibslock/dibs/redislock"
)

// TestAPIOverEveryStore goes through what of the API the store answers, with two
// instances: one is asked, and the other is looked at.
func TestAPIOverEveryStore(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string {
			return "redis://" + servers.SharedRedis(t).Addr() + "/0?prefix=web&journal=on"
		},
		"postgres": func(t *testing.T) string {
			url := fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&schema=web", servers.SharedPostgres(t).Addr())
			setup, err := driver.PlanSetup(url)
			if err == nil {
				_, err = setup.Make(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return url + "&journal=on"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, gate := place(t), filepath.Join(t.TempDir(), "gate")
			held := "command: [sh, -c, 'echo begun; until [ -e " + gate + " ]; do sleep 0.02; done; echo done']"
			jobs := "  held: { " + held + " }\n  line: { on_conflict: queue, queue: { max: 1 }, " + held + " }\n  limited: { command: 'true', rate_limit: { runs: 1, per: 1h } }\n"
			a := newSiteOver(t, url, jobs, web.Options{Users: web.Open()})
			b := newSiteOver(t, url, jobs, web.Options{Users: web.Open()})
			a.documented()
			b.documented()

			// One runs, and the other instance says who.
			run := decode[web.Run](t, a.do("POST", "/run/held", "", "Idempotency-Key", "k"))
			if p := b.do("POST", "/run/held", ""); p.StatusCode != 409 || p.Header.Get("Retry-After") == "" || !strings.Contains(p.problem(t).Holder.Note, run.ID) {
				t.Errorf("%d %v %s", p.StatusCode, p.Header, p.text)
			}
			if again := b.do("POST", "/run/held", "", "Idempotency-Key", "k"); again.Header.Get("Idempotent-Replayed") != "true" || decode[web.Run](t, again).ID != run.ID {
				t.Errorf("%d %v %s", again.StatusCode, again.Header, again.text)
			}
			lock := b.do("GET", "/api/v1/locks/job:held", "")
			if lock.StatusCode != 200 || lock.Header.Get("ETag") == "" {
				t.Errorf("%d %v %s", lock.StatusCode, lock.Header, lock.text)
			}
			if stale := b.do("DELETE", "/api/v1/locks/job:held", "", "If-Match", `"1234567"`); stale.StatusCode != 412 {
				t.Errorf("%d %s", stale.StatusCode, stale.text)
			}

			// The queue, the limit, a pause.
			for i, want := range []int{202, 202, 429} {
				site := []*site{a, b}[i%2]
				if i == 1 {
					until(t, "it runs", func() bool {
						job := decode[web.Job](t, b.do("GET", "/run/line", ""))
						return job.Current != nil && job.Queued == 0
					})
				}
				if got := site.do("POST", "/run/line", ""); got.StatusCode != want {
					t.Errorf("%d: %d %s", i, got.StatusCode, got.text)
				}
			}
			if got := a.do("POST", "/run/limited", "", "Prefer", "wait=60"); got.StatusCode != 200 {
				t.Errorf("%d %s", got.StatusCode, got.text)
			}
			until(t, "the lock is free", func() bool { return b.do("GET", "/api/v1/locks/job:limited", "").StatusCode == 404 })
			if got := b.do("POST", "/run/limited", ""); got.StatusCode != 429 || !near(got.Header.Get("Retry-After"), 3600) {
				t.Errorf("%d %v %s", got.StatusCode, got.Header, got.text)
			}
			if got := b.do("POST", "/api/v1/jobs/limited/pause", `{"reason":"why"}`); got.StatusCode != 200 {
				t.Errorf("%d %s", got.StatusCode, got.text)
			}
			if got := a.do("POST", "/run/limited", ""); got.StatusCode != 423 {
				t.Errorf("%d %s", got.StatusCode, got.text)
			}

			// What goes on, heard at the other instance.
			resp, err := http.Get(b.srv.URL + "/api/v1/runs/" + run.ID + "/log?follow=true")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			log := bufio.NewScanner(resp.Body)
			if !log.Scan() || log.Text() != "begun" {
				t.Errorf("%q, %v", log.Text(), log.Err())
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if !log.Scan() || log.Text() != "done" || log.Scan() {
				t.Errorf("%q, %v", log.Text(), log.Err())
			}
			until(t, "the queue is empty", func() bool {
				job := decode[web.Job](t, b.do("GET", "/api/v1/jobs/line", ""))
				return job.Queued == 0 && job.Current == nil
			})

			// Lists, on whichever instance.
			for path, want := range map[string]string{
				"/api/v1/runs?job=line&state=succeeded": `"state":"succeeded"`, "/api/v1/runs?limit=2": `"next"`, "/api/v1/instances": `"self":true`,
				"/api/v1/locks": `"locks"`, "/api/v1/history?prefix=job:held": `"kind":"granted"`, "/api/v1/jobs": `"reason":"why"`, "/metrics": "dibs_store_request_duration_seconds_count",
			} {
				if got := b.do("GET", path, ""); got.StatusCode != 200 || !strings.Contains(got.text, want) {
					t.Errorf("%s: %d, no %s in %s", path, got.StatusCode, want, got.text)
				}
			}
		})
	}
}

// A lock of another program is told as such, and what can't be read spoils no other.
func TestLocksOfOtherPrograms(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	s := newSiteOver(t, "redis://"+r.Addr()+"/0?layout=plain", "  a: { command: 'true' }\n", web.Options{Users: web.Open()})
	for _, set := range [][]any{{"SET", "theirs", "token", "PX", "600000"}, {"SET", "other:{bad}", "no state"}} {
		if _, err := r.Do(set...); err != nil {
			t.Fatal(err)
		}
	}
	a := s.do("GET", "/api/v1/locks/theirs", "")
	if a.StatusCode != 200 || a.Header.Get("ETag") == `""` {
		t.Fatalf("%d %v %s", a.StatusCode, a.Header, a.text)
	}
	if l := decode[web.Lock](t, a); len(l.Holders) != 1 || !l.Holders[0].Foreign || l.Holders[0].Left == 0 {
		t.Errorf("%+v", l)
	}
	other := newSiteOver(t, "redis://"+r.Addr()+"/0?prefix=other", "  a: { command: 'true' }\n", web.Options{Users: web.Open()})
	if a := other.do("GET", "/api/v1/locks/bad", ""); a.StatusCode == 200 || a.StatusCode == 404 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	lease, err := other.run.Client().Mutex("ba").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a := other.do("GET", "/api/v1/locks/ba", ""); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
