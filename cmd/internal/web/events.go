package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// heartbeat is how often a quiet stream says that it lives.
const heartbeat = 15 * time.Second

// A Snapshot is how all stands: what a stream begins with, and what it says again
// when it can't tell what was missed.
type Snapshot struct {
	Instances []Instance `json:"instances"`
	Jobs      []Job      `json:"jobs"`
	Runs      []Run      `json:"runs"` // in hand, on whatever instance
}

// events streams changes: a snapshot, then what happens. A client that comes back
// with Last-Event-ID to the same instance gets what it missed instead.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // HEAD
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if !s.sit() {
		crowded().(*Problem).write(w)
		return
	}
	defer s.leave()
	stream, err := sse.Upgrade(w, r)
	if err != nil {
		problem(http.StatusInternalServerError, "", "%v", err).write(w)
		return
	}
	e := &eventStream{s: s, stream: stream, out: http.NewResponseController(w)}
	// An id is an instance's own: its name goes with it.
	instance, after, _ := strings.Cut(r.Header.Get("Last-Event-ID"), ".")
	if instance != s.run.ID() {
		after = ""
	}
	feed, whole := s.run.Feed(after)
	defer feed.Close()
	e.run(r.Context(), feed, whole)
}

type eventStream struct {
	s      *Server
	stream *sse.Session
	out    *http.ResponseController
}

func (e *eventStream) run(ctx context.Context, feed *runner.Feed, whole bool) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if whole && e.snapshot(ctx, feed.At()) != nil {
			return
		}
		events, missed := feed.Next()
		for _, one := range events {
			if e.send(one.Type, one.ID, shownOf(one.Data, e.s.run.ID())) != nil {
				return
			}
		}
		if whole = missed; whole {
			continue
		}
		select {
		case <-feed.News():
		case <-beat.C:
			m := &sse.Message{}
			m.AppendComment("still here")
			if e.put(m) != nil {
				return
			}
		case <-feed.Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}

// shownOf is an event's data as it is shown.
func shownOf(data any, self string) any {
	switch d := data.(type) {
	case book.Run:
		return runOf(d)
	case []book.Instance:
		shown := make([]Instance, 0, len(d))
		for _, in := range d {
			shown = append(shown, instanceOf(in, self))
		}
		return map[string]any{"instances": shown}
	}
	return data
}

func (e *eventStream) snapshot(ctx context.Context, id uint64) error {
	ctx, cancel := asking(ctx)
	defer cancel()
	snap := Snapshot{Runs: []Run{}}
	all, err := e.s.run.Book().Instances(ctx)
	if err != nil {
		return e.send("unavailable", id, refusal(err))
	}
	for _, in := range all {
		snap.Instances = append(snap.Instances, instanceOf(in, e.s.run.ID()))
		for _, a := range in.Active {
			if run, err := e.s.run.Book().Run(ctx, a.Run); err == nil {
				snap.Runs = append(snap.Runs, runOf(run))
			}
		}
	}
	jobs, err := e.s.listJobs(ctx, &Page{Limit: 200})
	if err != nil {
		return e.send("unavailable", id, err)
	}
	snap.Jobs = jobs.Body.Jobs
	return e.send("snapshot", id, snap)
}

func (e *eventStream) send(kind string, id uint64, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	m := &sse.Message{ID: sse.ID(e.s.run.ID() + "." + strconv.FormatUint(id, 10)), Type: sse.Type(kind)}
	m.AppendData(string(text))
	return e.put(m)
}

func (e *eventStream) put(m *sse.Message) error {
	_ = e.out.SetWriteDeadline(time.Now().Add(e.s.patience))
	if err := e.stream.Send(m); err != nil {
		return err
	}
	return e.stream.Flush()
}
