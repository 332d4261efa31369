package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/driver"
)

// A Run is one run of a job, as it is shown.
type Run struct {
	ID        string            `json:"id" doc:"a UUIDv7"`
	Job       string            `json:"job"`
	State     string            `json:"state" enum:"queued,waiting,running,succeeded,failed,timeout,lost,cancelled,skipped,missed"`
	Reason    string            `json:"reason,omitempty" doc:"why it ended so"`
	Holder    string            `json:"holder,omitempty" doc:"skipped: who was in the way"`
	Trigger   string            `json:"trigger" doc:"schedule, http or cli"`
	By        string            `json:"by,omitempty" doc:"who asked for it"`
	Params    map[string]string `json:"params,omitempty"`
	Tick      *time.Time        `json:"scheduled_at,omitempty"`
	Ticks     int               `json:"ticks,omitempty" doc:"missed: how many, of which scheduled_at is the last"`
	Created   time.Time         `json:"created_at"`
	Started   *time.Time        `json:"started_at,omitempty"`
	Ended     *time.Time        `json:"ended_at,omitempty"`
	Attempt   int               `json:"attempt"`
	Lock      string            `json:"lock,omitempty"`
	Fence     string            `json:"fence,omitempty" doc:"the fencing token, a decimal number"`
	Instance  string            `json:"instance,omitempty"`
	Trace     string            `json:"traceparent,omitempty"`
	Exit      *int              `json:"exit_code,omitempty"`
	Status    int               `json:"http_status,omitempty"`
	RetryOf   string            `json:"retry_of,omitempty" doc:"the lost run that this one repeats"`
	RetriedAs string            `json:"retried_as,omitempty"`
	Position  int               `json:"position,omitempty" doc:"in the queue, from 1, when it was accepted"`
}

func runOf(r book.Run) Run {
	v := Run{
		ID: r.ID, Job: r.Job, State: string(r.State), Reason: r.Reason, Holder: r.Holder, Trigger: r.Trigger, By: r.By,
		Params: r.Params, Tick: r.Tick, Ticks: r.Count, Created: r.Created, Started: r.Started, Ended: r.Ended,
		Attempt: r.Attempt, Lock: r.Lock, Instance: r.Instance, Trace: r.Trace, Exit: r.Exit, Status: r.Status,
		RetryOf: r.RetryOf, RetriedAs: r.RetriedAs,
	}
	if r.Fence != 0 {
		v.Fence = strconv.FormatUint(r.Fence, 10)
	}
	return v
}

// A Job is a job and how it stands.
type Job struct {
	ID       string     `json:"id"`
	Pattern  bool       `json:"pattern,omitempty" doc:"the id has parameters"`
	Lock     string     `json:"lock"`
	Conflict string     `json:"on_conflict" enum:"skip,wait,queue"`
	Schedule []string   `json:"schedule,omitempty"`
	Timezone string     `json:"timezone"`
	Next     *time.Time `json:"next_run_at,omitempty"`
	Paused   *Pause     `json:"paused,omitempty"`
	Queued   int        `json:"queued"`
	Current  *Run       `json:"current,omitempty" doc:"the run that isn't over"`
	Last     *Run       `json:"last,omitempty" doc:"the last one that is over"`
}

// A Pause is an operator's.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

func jobOf(j *config.Job) Job {
	return Job{ID: j.ID, Pattern: j.Pattern(), Lock: j.Lock, Conflict: j.OnConflict, Schedule: j.Schedule, Timezone: j.Timezone}
}

// A Holder is a claim on a lock, or a place in its line.
type Holder struct {
	Key      string `json:"key"`
	State    string `json:"state" doc:"held, handed, kept, draining, revoked or waiting"`
	Mode     string `json:"mode" doc:"exclusive, shared or counted"`
	Token    string `json:"token,omitempty" doc:"identifies the grant; a decimal number"`
	Fence    string `json:"fence,omitempty"`
	Units    int    `json:"units"`
	Capacity int    `json:"capacity"`
	Place    string `json:"place,omitempty" doc:"the number of a place in line"`
	Age      int64  `json:"age_ms"`
	Left     int64  `json:"left_ms" doc:"until it ends if nobody is heard of"`
	TTL      int64  `json:"ttl_ms"`
	Note     string `json:"note,omitempty" doc:"who it is"`
	Foreign  bool   `json:"foreign,omitempty" doc:"a program that is not dibs; an age_ms or left_ms of 0 is then unknown"`
}

func holderOf(h dibs.Holder) Holder {
	number := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	return Holder{
		Key: h.Name, State: h.State.String(), Mode: h.Mode().String(), Token: number(h.Token), Fence: number(h.Fence),
		Units: h.Units, Capacity: h.Capacity, Place: number(h.Place),
		Age: h.Age.Milliseconds(), Left: h.Left.Milliseconds(), TTL: h.TTL.Milliseconds(), Note: h.Note, Foreign: h.Foreign,
	}
}

// A Lock is who holds a key and who waits for it.
type Lock struct {
	Key     string   `json:"key"`
	Holders []Holder `json:"holders"`
	Waiters []Holder `json:"waiters"`
}

func (l *Lock) add(h dibs.Holder) {
	if h.State == driver.Waiting {
		l.Waiters = append(l.Waiters, holderOf(h))
		return
	}
	l.Holders = append(l.Holders, holderOf(h))
}

// An Event is a line of the store's journal.
type Event struct {
	Seq    string    `json:"seq"`
	At     time.Time `json:"at"`
	Kind   string    `json:"kind" doc:"granted, handed, released, expired or revoked"`
	Key    string    `json:"key"`
	Token  string    `json:"token"`
	Fence  string    `json:"fence"`
	Took   bool      `json:"took_over,omitempty" doc:"the holder before ended by expiry or death"`
	Now    bool      `json:"now,omitempty"`
	Note   string    `json:"note,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

func eventOf(e driver.Event) Event {
	return Event{
		Seq: strconv.FormatUint(e.Seq, 10), At: e.At.UTC(), Kind: e.Kind.String(), Key: e.Name,
		Token: strconv.FormatUint(e.Token, 10), Fence: strconv.FormatUint(e.Fence, 10),
		Took: e.TookOver, Now: e.Now, Note: e.Note, Reason: e.Reason,
	}
}

// An Instance is one of those that share the store.
type Instance struct {
	ID      string    `json:"id"`
	Self    bool      `json:"self,omitempty" doc:"it is the one that answers"`
	Host    string    `json:"host"`
	Pid     int       `json:"pid"`
	Version string    `json:"version"`
	Listen  string    `json:"listen,omitempty"`
	Started time.Time `json:"started_at"`
	Left    bool      `json:"left,omitempty" doc:"it has gone, and what it left is being taken over"`
	Runs    []string  `json:"runs" doc:"what it has in hand"`
}

func instanceOf(in book.Instance, self string) Instance {
	v := Instance{ID: in.ID, Self: in.ID == self, Host: in.Host, Pid: in.Pid, Version: in.Version, Listen: in.Listen, Started: in.Started, Left: in.Left, Runs: []string{}}
	for _, a := range in.Active {
		v.Runs = append(v.Runs, a.Run)
	}
	return v
}

// allowed tells whether a job takes a method.
func allowed(j *config.Job, method string) bool {
	if slices.Contains(j.Methods, method) {
		return true
	}
	return method == http.MethodPost && len(j.Methods) == 0
}
