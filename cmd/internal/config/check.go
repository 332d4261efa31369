package config

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dibslock/dibs/cmd/internal/schedule"
	"github.com/dibslock/dibs/driver"
)

var namespace = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// check notes what can't be meant, as far as it can be told without the store.
func (c *Config) check(d *decoder) {
	if c.Version != 1 {
		d.fault("version", "want version: 1")
	}
	if !namespace.MatchString(c.Store.Namespace) {
		d.fault(under("store", "namespace"), "want letters, digits and _ . -, at most 64")
	}
	if c.Store.URL != "" {
		if u, err := driver.ParseURL(c.Store.URL); err != nil || u.Scheme == "" {
			d.fault(under("store", "url"), "want a store's URL such as sqlite:///var/lib/dibs/locks.db")
		}
	}
	c.Server.check(d)
	c.Defaults.check(d)
	if len(c.Jobs) == 0 {
		d.fault("jobs", "there is no job")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Jobs)) {
		c.Jobs[id].check(d, under("jobs", id))
	}
	for i, j := range c.patterns {
		for _, other := range c.patterns[:i] {
			if j.shape.same(other.shape) {
				d.fault(under("jobs", j.ID), "it takes the same ids as %s, which is always found first", other.ID)
			}
		}
	}
}

// The bounds of what is held: below the first a store that takes a third of a
// second to answer would end every run; above the second a dead instance would
// keep a job from running for longer than anybody waits.
const (
	minTTL   = time.Second
	maxTTL   = 24 * time.Hour
	longest  = 365 * 24 * time.Hour // of what else is held or counted
	sampling = 500                  // ticks that are looked at for the time between two
)

func checkTTL(d *decoder, at string, ttl time.Duration) {
	switch {
	case d.where[at] == nil: // the default's, which is told of there
	case ttl < minTTL:
		d.fault(at, "%v is too short: it is renewed at a third of that, and one slow answer of the store would end the run; want 1s or more", ttl)
	case ttl > maxTTL:
		d.fault(at, "%v is too long: a dead instance keeps its jobs from running for so long; want 24h or less", ttl)
	}
}

func (s *Server) check(d *decoder) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		d.fault(under("server", "listen"), "want host:port, such as 127.0.0.1:8080")
	} else if s.Auth == nil && !Loopback(host) {
		d.fault(under("server", "listen"), "%s can be reached from elsewhere, and nobody would be asked who they are: configure server.auth, or listen on 127.0.0.1", s.Listen)
	}
	if s.MaxRuns < 1 || s.MaxRuns > 1000 {
		d.fault(under("server", "max_runs"), "want 1 to 1000") // they fit in one record
	}
	if a := s.Auth; a != nil {
		oneOf(d, under(under("server", "auth"), "anonymous"), a.Anonymous, "none", "read", "run")
		if a.TokensFile == "" {
			d.fault(under("server", "auth"), "tokens_file is missing")
		}
	}
	if t := s.TLS; t != nil && (t.Cert == "" || t.Key == "") {
		d.fault(under("server", "tls"), "both cert and key are needed")
	}
}

// Loopback tells whether host can be reached from this machine alone.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func (x *Defaults) check(d *decoder) {
	if _, err := time.LoadLocation(x.Timezone); err != nil {
		d.fault(under("defaults", "timezone"), "%q is no time zone, such as Europe/Berlin", x.Timezone)
	}
	checkTTL(d, under("defaults", "ttl"), x.TTL.Duration)
	x.History.check(d, under("defaults", "history"))
}

func (h *History) check(d *decoder, at string) {
	if h.MaxRuns < 1 || h.MaxRuns > 10000 {
		d.fault(under(at, "max_runs"), "want 1 to 10000")
	}
	if h.LogBytes > driver.MaxRecord {
		d.fault(under(at, "log_bytes"), "at most 1MiB")
	}
}

func oneOf(d *decoder, at, value string, choices ...string) {
	if !slices.Contains(choices, value) {
		d.fault(at, "%q: want %s", value, strings.Join(choices, ", "))
	}
}

func positive(d *decoder, at string, n int) {
	if n < 1 {
		d.fault(at, "want 1 or more")
	}
}

func (j *Job) check(d *decoder, at string) {
	_, problems := newShape(j.ID, j.Params)
	for _, p := range problems {
		d.fault(at, "%s", p)
	}
	j.checkWork(d, at)
	j.checkSchedule(d, at)
	j.checkLock(d, at)
	oneOf(d, under(at, "missed"), j.Missed, "skip", "once", "all")
	oneOf(d, under(at, "on_conflict"), j.OnConflict, "skip", "wait", "queue")
	oneOf(d, under(at, "on_lost"), j.OnLost, "kill", "warn")
	for i, m := range j.Methods {
		oneOf(d, under(under(at, "trigger_methods"), strconv.Itoa(i)), m, http.MethodPost, http.MethodGet)
	}
	switch {
	case j.Wait != nil && j.OnConflict != "wait":
		d.fault(under(at, "wait"), "it has no effect without on_conflict: wait")
	case j.Wait != nil:
		positive(d, under(under(at, "wait"), "max"), j.Wait.Max)
	}
	switch {
	case j.Queue != nil && j.OnConflict != "queue":
		d.fault(under(at, "queue"), "it has no effect without on_conflict: queue")
	case j.Queue != nil && (j.Queue.Max < 1 || j.Queue.Max > 10000):
		d.fault(under(under(at, "queue"), "max"), "want 1 to 10000")
	}
	if r := j.Retries; r != nil {
		if r.Max < 1 || r.Max > 100 {
			d.fault(under(under(at, "retries"), "max"), "want 1 to 100")
		}
		if r.Factor < 1 {
			d.fault(under(under(at, "retries"), "factor"), "want 1 or more")
		}
		if r.MaxBackoff.Duration < r.Backoff.Duration {
			d.fault(under(under(at, "retries"), "max_backoff"), "%v is less than the first pause, backoff %v", r.MaxBackoff, r.Backoff)
		}
	}
	if r := j.RateLimit; r != nil {
		positive(d, under(under(at, "rate_limit"), "runs"), r.Runs)
		switch {
		case r.Per.Duration == 0:
			d.fault(under(at, "rate_limit"), "per is missing, such as per: 1h")
		case r.Per.Duration > longest:
			d.fault(under(under(at, "rate_limit"), "per"), "want 365d or less")
		case time.Duration(r.Runs) > r.Per.Duration:
			d.fault(under(under(at, "rate_limit"), "runs"), "that is more than one a nanosecond")
		}
	}
	if j.AtLeastFor.Duration > longest {
		d.fault(under(at, "at_least_for"), "want 365d or less")
	}
	j.History.check(d, under(at, "history"))
}

func (j *Job) checkSchedule(d *decoder, at string) {
	loc, err := time.LoadLocation(j.Timezone)
	if err != nil {
		if d.where[under(at, "timezone")] != nil { // or it is that of defaults, which is told of there
			d.fault(under(at, "timezone"), "%q is no time zone, such as Europe/Berlin", j.Timezone)
		}
		loc = time.UTC
	}
	j.Location = loc
	if j.Pattern() && j.Schedule != nil {
		d.fault(under(at, "schedule"), "a job with parameters in its id has none to run with at a tick")
	}
	for _, name := range slices.Sorted(maps.Keys(j.shape.allowed)) {
		if j.Schedule != nil && !j.Pattern() && !j.shape.allowed[name].MatchString("") {
			d.fault(under(at, "schedule"), "a tick brings no parameter %s, and its expression does not match none", name)
		}
	}
	right := true
	for i, one := range j.Schedule {
		if _, err := schedule.New(j.ID, []string{one}, loc, 0); err != nil {
			path := under(under(at, "schedule"), strconv.Itoa(i))
			d.fault(path, "%v", err)
			right = false
		}
	}
	switch {
	case j.Jitter.Duration == 0:
	case j.Schedule == nil:
		d.fault(under(at, "jitter"), "it has no effect without a schedule")
	case right:
		s, _ := schedule.New(j.ID, j.Schedule, loc, 0)
		if apart := s.Apart(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sampling); apart != 0 && j.Jitter.Duration > apart {
			d.fault(under(at, "jitter"), "%v is longer than the %v between two ticks: one would be due after the next", j.Jitter, Duration{apart})
		}
	}
}

func (j *Job) checkLock(d *decoder, at string) {
	checkTTL(d, under(at, "ttl"), j.TTL.Duration)
	sample := make(map[string]string)
	for _, name := range j.shape.names {
		sample[name] = "x"
	}
	name := fill(j.Lock, sample)
	if err := driver.CheckName(name); err != nil {
		d.fault(under(at, "lock"), "%v", err)
	}
	for _, seg := range regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`).FindAllString(name, -1) {
		d.fault(under(at, "lock"), "%s is no parameter of the job's id", seg)
	}
	if j.Concurrency < 1 || j.Concurrency > driver.MaxUnits {
		d.fault(under(at, "concurrency"), "want 1 or more")
	}
	if j.Grace.Duration >= j.TTL.Duration/2 {
		d.fault(under(at, "grace"), "%v must be less than half of ttl %v, or the work could not be stopped before the lock ends", j.Grace.Duration, j.TTL.Duration)
	}
}

var templates = regexp.MustCompile(`\{\{.*?\}\}`)

// checkProgram tells of what is meant for a shell.
func checkProgram(d *decoder, at, text string) {
	words := strings.Fields(text)
	switch {
	case len(strings.Fields(templates.ReplaceAllString(text, "x"))) < 2:
	case strings.ContainsAny(text, "'\"|&;<>$`{"):
		d.fault(at, `no shell reads this, and it is no program's name: write a list, such as [sh, -c, "…"]`)
	default:
		d.fault(at, `no shell takes this apart: write [%s]; or ["%s"] if that is the program's name`, strings.Join(words, ", "), text)
	}
}

func (j *Job) checkWork(d *decoder, at string) {
	switch {
	case j.Command == nil && j.HTTP == nil:
		d.fault(at, "it has no work: command or http is missing")
		return
	case j.Command != nil && j.HTTP != nil:
		d.fault(under(at, "http"), "a job has a command or a request, not both")
	}
	try := func(path, text string) {
		if _, err := render(text, j.sample()); err != nil {
			d.fault(path, "%v", err)
		}
	}
	for i, arg := range j.Command {
		try(under(under(at, "command"), strconv.Itoa(i)), arg)
	}
	if j.Command != nil && (len(j.Command) == 0 || j.Command[0] == "") {
		d.fault(under(at, "command"), "the program's name is missing")
	}
	if d.single[under(at, "command")] {
		checkProgram(d, under(at, "command"), j.Command[0])
	}
	if h := j.HTTP; h != nil {
		at := under(at, "http")
		try(under(at, "url"), h.URL)
		try(under(at, "body"), h.Body)
		for name, value := range h.Headers {
			try(under(under(at, "headers"), name), value)
			if http.CanonicalHeaderKey(name) == "" || strings.ContainsAny(name, " \r\n:") {
				d.fault(under(under(at, "headers"), name), "that is no name of a header")
			}
		}
		text, _ := render(h.URL, j.sample())
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			d.fault(under(at, "url"), "want a URL such as https://app.internal/warm")
		}
		if req, err := http.NewRequest(h.Method, "http://x", nil); err != nil || req == nil {
			d.fault(under(at, "method"), "%q is no method", h.Method)
		}
		if h.SendFence && j.Concurrency > 1 {
			d.fault(under(at, "send_fence"), "with a concurrency of %d a run has no fence", j.Concurrency)
		}
		for _, code := range h.Expect.Status {
			if code < 100 || code > 599 {
				d.fault(under(under(at, "expect"), "status"), "%d is no status", code)
			}
		}
	}
}
