package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/cmd/internal/config"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"STORE": "sqlite:///x.db", "EVIL": "a\nversion: 2", "EMPTY": ""}[name]
	return v, ok
}

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("dibs.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// whole has every key that there is.
const whole = `version: 1
store: { url: "${STORE}", namespace: prod }
server:
  listen: 127.0.0.1:8080
  drain: 30s
  max_runs: 100
  auth: { tokens_file: /run/secrets/tokens, anonymous: read }
  tls: { cert: a.pem, key: b.pem }
defaults: { ttl: 30s, grace: 5s, timezone: UTC, history: { keep: 30d, max_runs: 1000, log_bytes: 64KiB } }
jobs:
  invoice-reminders:
    schedule: "* * * * *"
    timezone: Europe/Berlin
    jitter: 5s
    missed: once
    command: ["/usr/bin/send-reminders", "--day", "{{ .ScheduledAt.Format \"2006-01-02\" }}"]
    lock: job:invoice-reminders
    ttl: 30s
    grace: 3s
    at_least_for: 20s
    concurrency: 1
    on_conflict: skip
    on_lost: kill
    timeout: 10m
    retries: { max: 3, backoff: 10s, factor: 2, max_backoff: 5m }
    rate_limit: { runs: 10, per: 1h }
    idempotency: { ttl: 24h }
    trigger_methods: [GET, POST]
    history: { max_runs: 10 }
  warm-cache:
    schedule: ["@every 5m", "@daily"]
    http: { method: POST, url: "https://app.internal/warm", headers: { X-From: dibs }, body: "{{ .RunID }}", expect: { status: [200, 204] }, timeout: 30s, send_fence: true }
    on_conflict: queue
    queue: { max: 5 }
  "tenant-sync/{tenant}":
    command: ["/usr/bin/sync", "{{ .Params.tenant }}", "{{ .Params.day }}"]
    params: { tenant: "[a-z]+", day: "[0-9-]{10}" }
    lock: "sync:{tenant}"
    on_conflict: wait
    wait: { max: 5, for: 1m }
  "{id}": { command: "true" }
`

func TestWholeFile(t *testing.T) {
	t.Parallel()
	c := parse(t, whole)
	j := c.Jobs["invoice-reminders"]
	if c.Store.URL != "sqlite:///x.db" || j.Retries.Max != 3 || j.Location.String() != "Europe/Berlin" ||
		j.History.MaxRuns != 10 || j.History.Keep.Duration != 30*24*time.Hour || c.Jobs["warm-cache"].TTL.Duration != 30*time.Second {
		t.Errorf("%+v %+v", c.Store, j)
	}
	text, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Parse("shown", text, env)
	if err != nil {
		t.Fatalf("what is shown can't be read: %v\n%s", err, text)
	}
	if second, _ := again.Show(); string(second) != string(text) {
		t.Errorf("shown twice it differs:\n%s\n%s", text, second)
	}
}

func TestShowHidesPasswords(t *testing.T) {
	t.Parallel()
	c := parse(t, "version: 1\nstore: {url: 'redis://u:hunter2@h:1'}\njobs: {a: {command: a}}")
	if text, _ := c.Show(); strings.Contains(string(text), "hunter2") {
		t.Errorf("%s", text)
	}
}

func TestAllMistakesAreShownAtOnce(t *testing.T) {
	t.Parallel()
	text := `version: 2
store: { nmespace: x }
server: { listen: 0.0.0.0:80 }
jobs:
  a:
    scedule: "@daily"
    ttl: soon
    command: ["x", "{{ .Nope }}"]
  b:
    command: x
    http: { url: nowhere }
    schedule: "61 * * * *"
    grace: 20s
    timezone: Mars/Olympus
  c/{x}/{x}:
    command: [x]
    schedule: "@daily"
    lock: "l{y}"
  d: {}
  e: { command: "${NOPE}" , on_conflict: maybe }
  f: { concurrency: 2, http: { url: "http://x", send_fence: true } }
`
	_, err := config.Parse("dibs.yaml", []byte(text), env)
	var faults *config.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1:1: version: want version: 1",
		"2:10: store.nmespace: unknown key; did you mean namespace?",
		"3:11: server.listen: 0.0.0.0:80 can be reached",
		"6:5: jobs.a.scedule: unknown key; did you mean schedule?",
		`7:5: jobs.a.ttl: want a duration`,
		"8:20: jobs.a.command.1: the template can't be filled in",
		"11:5: jobs.b.http: a job has a command or a request",
		"jobs.b.http.url: want a URL",
		"12:5: jobs.b.schedule.0: \"61 * * * *\"",
		"13:5: jobs.b.grace: 20s must be less than half",
		`14:5: jobs.b.timezone: "Mars/Olympus"`,
		"15:3: jobs.c/{x}/{x}: the parameter \"{x}\" is there twice",
		"17:5: jobs.c/{x}/{x}.schedule: a job with parameters",
		"18:5: jobs.c/{x}/{x}.lock: {y} is no parameter",
		"19:3: jobs.d: it has no work",
		"20:8: jobs.e.command: the environment has no variable NOPE",
		`20:29: jobs.e.on_conflict: "maybe": want skip, wait, queue`,
		"21:49: jobs.f.http.send_fence: with a concurrency of 2 a run has no fence",
		"    6 |     scedule: \"@daily\"\n      |     ^",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

// TestNothingIsTakenForAnotherValue: a 0 is not "the default", and a mistake in
// the defaults is told of once.
func TestNothingIsTakenForAnotherValue(t *testing.T) {
	t.Parallel()
	text := `version: 1
server: { max_runs: 0 }
defaults: { timezone: Mars/Olympus, history: { log_bytes: 0 } }
jobs:
  a: { command: [x], concurrency: 0, retries: { max: 1, factor: 0 } }
  b: { command: [x], on_conflict: queue, queue: { max: 0 } }
  c: { command: [x], on_conflict: wait, wait: { max: 0 } }
  d: { command: [x], params: { y: "a)|(b" } }
  e: { command: [x], params: { y: "[" } }
  f: { command: [x], params: { y: "a+" }, schedule: "@daily" }
`
	_, err := config.Parse("dibs.yaml", []byte(text), env)
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"server.max_runs: want 1 or more", "defaults.history.log_bytes: want a size", "jobs.a.concurrency: want 1 or more",
		"jobs.a.retries.factor: want 1 or more", "jobs.b.queue.max: want 1 or more", "jobs.c.wait.max: want 1 or more",
		"jobs.d: the expression of the parameter y: error parsing regexp: unexpected ): `a)|(b`",
		"jobs.e: the expression of the parameter y: error parsing regexp: missing closing ]: `[`",
		"jobs.f.schedule: a tick brings no parameter y",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not there once in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "is no time zone"); n != 1 {
		t.Errorf("the time zone is told of %d times", n)
	}
}

// TestWhatWouldNeverWork is told of with the reason, and what works is taken.
func TestWhatWouldNeverWork(t *testing.T) {
	t.Parallel()
	text := `version: 1
defaults: { ttl: 10ms, grace: 1ms }
jobs:
  a: { command: [x], ttl: 1ms }
  b: { command: [x], ttl: 48h }
  c: { command: [x], schedule: "@daily", jitter: 99h }
  d: { command: [x], schedule: ["0 8 * * *", "5 8 * * *"], jitter: 6m }
  e: { command: ls -l }
  f: { command: "sh -c 'ls -l'" }
  g: { command: [x], retries: { max: 1, backoff: 1m, max_backoff: 1s } }
  h: { command: [x], rate_limit: { runs: 10, per: 9999d } }
  i: { command: [x], at_least_for: 9999d }
  "j/{x}": { command: [x] }
  "j/{y}": { command: [x] }
`
	_, err := config.Parse("dibs.yaml", []byte(text), env)
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"2:13: defaults.ttl: 10ms is too short", "4:22: jobs.a.ttl: 1ms is too short", "5:22: jobs.b.ttl: 48h0m0s is too long",
		"6:42: jobs.c.jitter: 99h0m0s is longer than the 24h0m0s between two ticks", "jobs.d.jitter: 6m0s is longer than the 5m0s",
		"8:8: jobs.e.command: no shell takes this apart: write [ls, -l];", "9:8: jobs.f.command: no shell reads this",
		"jobs.g.retries.max_backoff: 1s is less than the first pause", "jobs.h.rate_limit.per: want 365d or less",
		"jobs.i.at_least_for: want 365d or less", "14:3: jobs.j/{y}: it takes the same ids as j/{x}",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not there once in:\n%v", want, err)
		}
	}
	c := parse(t, `version: 1
jobs:
  a: { command: [x], ttl: 1s, schedule: ["0 8 * * *", "5 8 * * *"], jitter: 5m }
  b: { command: "{{ .Params.x }}", params: { x: "a" } }
  c: { command: ["a program"] }
  d: { command: [x], retries: { max: 1, backoff: 10m } }
  "e/{x}": { command: [x], params: { x: "[0-9]+" } }
  "e/{y}": { command: [x], params: { y: "[a-z]+" } }
`)
	if d := c.Jobs["d"].Retries.Pause(3); d != 10*time.Minute {
		t.Errorf("a pause is %v", d)
	}
}

// TestAKeyIsThereOnce: the last one of two would be taken, and the other lost.
func TestAKeyIsThereOnce(t *testing.T) {
	t.Parallel()
	text := `version: 1
version: 1
jobs:
  a: { command: [x], ttl: 2s, "ttl": 3s }
  b: { command: [x], params: { p: a, p: b } }
  a:
    command: [y]
    comand: [y]
`
	_, err := config.Parse("dibs.yaml", []byte(text), env)
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"2:1: version: it is there already, in line 1", "4:31: jobs.a.ttl: it is there already, in line 4",
		"5:38: jobs.b.params.p: it is there already, in line 5", "6:3: jobs.a: it is there already, in line 4",
	} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("%q is not there once in:\n%v", want, err)
		}
	}
}

// TestWhatCantBeReadHidesNothing of the jobs beside it, and makes nothing wrong
// that is right.
func TestWhatCantBeReadHidesNothing(t *testing.T) {
	t.Parallel()
	const rest = "  right: { command: [x] }\n\n  # more\n  last:\n    comand: [x]\n    command: [x]\n"
	const told = "jobs.last.comand: unknown key; did you mean command?"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"an open quote":    {"version: 1\njobs:\n  a:\n    command: \"ls\n    ttl: 5s\n" + rest, []string{":4:14: could not find end", told}},
		"an open bracket":  {"version: 1\njobs:\n  a: { command: [x }\n" + rest, []string{":3:", told}},
		"an indent":        {"version: 1\njobs:\n  a:\n   command: x\n    ttl: 5s\n" + rest, []string{":4:", told}},
		"a tab":            {"version: 1\njobs:\n  a:\n\tcommand: x\n" + rest, []string{":4:", told}},
		"a bare star":      {"version: 1\njobs:\n  a:\n    schedule: * * * * *\n" + rest, []string{":4:", "put it in quotes", told}},
		"a bare @":         {"version: 1\njobs:\n  a:\n    schedule: @daily\n" + rest, []string{":4:", "put it in quotes", told}},
		"a bare parameter": {"version: 1\njobs:\n  {id}:\n    command: x\n" + rest, []string{":3:", "put it in quotes", told}},
		"two of them":      {"version: 1\njobs:\n  a:\n    command: \"ls\n  b:\n    schedule: @daily\n" + rest, []string{":4:", ":6:", told}},
		"no job":           {"version: 1\nserver:\n  listen: '127\njobs:\n" + rest, []string{":3:", told}},
		"the defaults":     {"version: 1\ndefaults: { ttl: [ }\njobs:\n  a: { command: [x], grace: 40s }\n" + rest, []string{":2:", told}},
		"the version":      {"version: [\njobs:\n" + rest, []string{":1:", told}},
		"all of it":        {"- a\nb: c\n- [", []string{":2:", ":3:", "want a mapping"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f", []byte(tt.text), env)
			var faults *config.Faults
			if !errors.As(err, &faults) {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in:\n%v", want, err)
				}
			}
			if n := len(faults.List); n > 3 || n > len(tt.want) {
				t.Errorf("%d mistakes:\n%v", n, err)
			}
		})
	}
}

func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "- a", "a: [", "version: 1\njobs: {a: {command: b}}\n---\nversion: 1", "version: 1\njobs:\n  a: &x {command: b}\n  b: *x", "version: 1\nversion: 1", "version: 1\njobs: []", "\x00", "version: {a: b}\njobs: {a: 1}"} {
		if _, err := config.Parse("f", []byte(text), env); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestVariablesAreValues: what is in the environment can't change the structure.
func TestVariablesAreValues(t *testing.T) {
	t.Parallel()
	c := parse(t, "version: 1\njobs: {a: {command: ['${EVIL}', '$$x', '${NOPE:-y}', '${EMPTY:-z}', '$1']}}")
	if got := strings.Join(c.Jobs["a"].Command, "|"); got != "a\nversion: 2|$x|y|z|$1" {
		t.Errorf("%q", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	c := parse(t, whole)
	for id, want := range map[string]string{
		"warm-cache":                 "warm-cache job:warm-cache",
		"tenant-sync/acme":           "tenant-sync/{tenant} sync:acme",
		"anything":                   "{id} job:anything",
		"tenant-sync/ACME":           "",
		"tenant-sync/{tenant}":       "",
		"tenant-sync/a/b":            "",
		"{id}":                       "",
		"":                           "",
		"..":                         "",
		"-rf":                        "",
		"a\nb":                       "",
		"é":                          "",
		strings.Repeat("a", 129):     "",
		"tenant-sync/acme\n":         "",
		"tenant-sync/..":             "",
		"tenant-sync/a; rm -rf $IFS": "",
	} {
		got := ""
		if target, ok := c.Find(id); ok {
			got = target.ID + " " + target.Locked
			if target.Name != id {
				t.Errorf("%q is called %q", id, target.Name)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestParametersOfATrigger(t *testing.T) {
	t.Parallel()
	c := parse(t, whole)
	target, _ := c.Find("tenant-sync/acme")
	with, err := target.With(map[string]string{"day": "2026-01-02"})
	if err != nil {
		t.Fatal(err)
	}
	argv, err := with.Argv(config.Occasion{Params: with.Params})
	if err != nil || strings.Join(argv, " ") != "/usr/bin/sync acme 2026-01-02" {
		t.Error(argv, err)
	}
	for _, given := range []map[string]string{{"tenant": "b"}, {"nope": "b"}, {"day": "--force"}, {"day": "2026-01-02\n"}, {}, nil} {
		if _, err := target.With(given); err == nil {
			t.Errorf("%v is taken", given)
		}
	}
}

func TestPausesBetweenRetries(t *testing.T) {
	t.Parallel()
	r := parse(t, whole).Jobs["invoice-reminders"].Retries
	for n, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := r.Pause(n); got != want {
			t.Errorf("pause %d is %v, want %v", n, got, want)
		}
	}
}

// TestSchemaKnowsEveryKey compares the schema with a file that has every key.
func TestSchemaKnowsEveryKey(t *testing.T) {
	t.Parallel()
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(map[string]any)
	walk = func(s map[string]any) {
		if more, ok := s["additionalProperties"].(map[string]any); ok {
			walk(more)
		}
		properties, _ := s["properties"].(map[string]any)
		for name, one := range properties {
			keys++
			one := one.(map[string]any)
			if one["description"] == "" || one["description"] == nil {
				t.Errorf("%s has no description", name)
			}
			if !strings.Contains(whole, name+":") {
				t.Errorf("the whole file has no %s", name)
			}
			walk(one)
		}
	}
	walk(schema)
	if keys < 40 {
		t.Errorf("the schema has %d keys", keys)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Parse("f", []byte(text), env)
		if (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
		_ = err != nil && err.Error() == ""
	})
}
