package config

import (
	"time"
)

// A Config is a whole file. It isn't changed after Load.
type Config struct {
	Version  int             `yaml:"version" doc:"the version of this format: 1"`
	Store    Store           `yaml:"store" doc:"where locks, runs and queues are kept"`
	Server   Server          `yaml:"server" doc:"the HTTP server"`
	Defaults Defaults        `yaml:"defaults" doc:"what a job has that doesn't say otherwise"`
	Jobs     map[string]*Job `yaml:"jobs" doc:"the jobs by id; a segment such as {tenant} makes a pattern"`

	patterns []*Job // the jobs with parameters, the most literal first
}

// A Store says where the state is that all instances share.
type Store struct {
	URL       string `yaml:"url" doc:"the store's URL; default: as dibs run chooses"`
	Namespace string `yaml:"namespace" doc:"keeps runners apart that share a store; default: default"`
}

// A Server says how the runner is reached.
type Server struct {
	Listen  string   `yaml:"listen" doc:"host:port; default 127.0.0.1:8080. Any but a loopback address needs auth"`
	Drain   Duration `yaml:"drain" doc:"how long running jobs may take to end after TERM; default 30s"`
	MaxRuns int      `yaml:"max_runs" doc:"how many runs this instance has in hand at once; default 256"`
	Auth    *Auth    `yaml:"auth" doc:"who may do what"`
	TLS     *TLS     `yaml:"tls" doc:"serve HTTPS"`
}

// An Auth says who may do what.
type Auth struct {
	TokensFile string `yaml:"tokens_file" doc:"a file with a line NAME ROLE TOKEN for each user; roles: read, run, admin"`
	Anonymous  string `yaml:"anonymous" doc:"what may be done without a token: none, read or run; default none"`
}

// TLS names the files of a certificate and its key.
type TLS struct {
	Cert string `yaml:"cert" doc:"the certificate chain, a PEM file"`
	Key  string `yaml:"key" doc:"its key, a PEM file"`
}

// Defaults are what a job has that doesn't say otherwise.
type Defaults struct {
	TTL      Duration `yaml:"ttl" doc:"how long a lock outlives a dead runner; default 30s"`
	Grace    Duration `yaml:"grace" doc:"time from TERM to KILL; less than half of ttl; default 5s, or a quarter of ttl"`
	Timezone string   `yaml:"timezone" doc:"of schedules; default UTC"`
	History  History  `yaml:"history" doc:"what is kept of past runs"`
}

// A History bounds what is kept of past runs.
type History struct {
	Keep     Duration `yaml:"keep" doc:"how long a run is kept after its end; default 30d"`
	MaxRuns  int      `yaml:"max_runs" doc:"how many runs of a job are kept; default 1000"`
	LogBytes Size     `yaml:"log_bytes" doc:"how much of a run's output is kept, its end; default 64KiB, at most 1MiB"`
}

// A Job is what is run, when, and under which lock.
type Job struct {
	Schedule    List              `yaml:"schedule" doc:"a cron expression of 5 fields, @daily, @every 10m, or a list of them"`
	Timezone    string            `yaml:"timezone" doc:"of the schedule"`
	Jitter      Duration          `yaml:"jitter" doc:"run up to this much later than scheduled, the same on every instance"`
	Missed      string            `yaml:"missed" doc:"what becomes of ticks that no instance saw: skip, once or all; default skip"`
	Command     List              `yaml:"command" doc:"the program and its arguments, each a template; no shell"`
	HTTP        *HTTP             `yaml:"http" doc:"a request in place of a command"`
	Params      map[string]string `yaml:"params" doc:"a regular expression for each parameter; those not in the job's id may come with a trigger"`
	Lock        string            `yaml:"lock" doc:"the name that is locked; jobs with one name exclude each other; default job:<id>"`
	TTL         Duration          `yaml:"ttl" doc:"how long the lock outlives a dead runner"`
	Grace       Duration          `yaml:"grace" doc:"time from TERM to KILL"`
	AtLeastFor  Duration          `yaml:"at_least_for" doc:"hold the lock at least this long"`
	Concurrency int               `yaml:"concurrency" doc:"how many runs at once; default 1"`
	OnConflict  string            `yaml:"on_conflict" doc:"when the lock is held: skip, wait or queue; default skip"`
	Wait        *Wait             `yaml:"wait" doc:"bounds on_conflict: wait"`
	Queue       *Queue            `yaml:"queue" doc:"bounds on_conflict: queue"`
	OnLost      string            `yaml:"on_lost" doc:"when the lock is lost: kill the command, or only warn; default kill"`
	Timeout     Duration          `yaml:"timeout" doc:"stop the work after this long; default: none"`
	Retries     *Retries          `yaml:"retries" doc:"what follows a failure, a timeout or a loss"`
	RateLimit   *RateLimit        `yaml:"rate_limit" doc:"how many runs are accepted, by all instances together"`
	Idempotency *Idempotency      `yaml:"idempotency" doc:"how long an Idempotency-Key is remembered"`
	Methods     List              `yaml:"trigger_methods" doc:"the HTTP methods that start a run: POST, GET; default POST"`
	History     *History          `yaml:"history" doc:"what is kept of past runs"`

	ID       string         `yaml:"-"` // its key in the file
	Location *time.Location `yaml:"-"` // of Timezone

	shape shape
}

// HTTP is a request that is the work of a job.
type HTTP struct {
	Method    string            `yaml:"method" doc:"default POST"`
	URL       string            `yaml:"url" doc:"a template, as the arguments of a command"`
	Headers   map[string]string `yaml:"headers" doc:"sent with the request"`
	Body      string            `yaml:"body" doc:"a template"`
	Expect    Expect            `yaml:"expect" doc:"what counts as success"`
	Timeout   Duration          `yaml:"timeout" doc:"of the request; default 30s"`
	SendFence bool              `yaml:"send_fence" doc:"send the lock and its fencing token, as Dibs-Name and Dibs-Fence; concurrency must be 1"`
}

// Expect is what an answer must be to count as success.
type Expect struct {
	Status []int `yaml:"status" doc:"default: any 2xx"`
}

// A Wait bounds on_conflict: wait.
type Wait struct {
	Max int      `yaml:"max" doc:"how many runs may wait on one instance; default 100"`
	For Duration `yaml:"for" doc:"how long a run waits before it is skipped; default 10m"`
}

// A Queue bounds on_conflict: queue.
type Queue struct {
	Max int `yaml:"max" doc:"how many runs may be queued; default 100"`
}

// Retries say what follows a failure.
type Retries struct {
	Max        int      `yaml:"max" doc:"how many times a run is tried again"`
	Backoff    Duration `yaml:"backoff" doc:"the pause before the first retry; default 10s"`
	Factor     float64  `yaml:"factor" doc:"each pause is this many times longer; default 2"`
	MaxBackoff Duration `yaml:"max_backoff" doc:"the longest pause; default 5m"`
}

// A RateLimit is how many runs are accepted in a time.
type RateLimit struct {
	Runs int      `yaml:"runs" doc:"how many"`
	Per  Duration `yaml:"per" doc:"in how much time"`
}

// Idempotency says how long an Idempotency-Key is remembered.
type Idempotency struct {
	TTL Duration `yaml:"ttl" doc:"default 24h"`
}
