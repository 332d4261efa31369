package web

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibslock/dibs/cmd/internal/book"
)

type runsInput struct {
	Page
	Job   string   `query:"job" maxLength:"256" doc:"of one job"`
	State []string `query:"state" enum:"queued,waiting,running,succeeded,failed,timeout,lost,cancelled,skipped,missed" doc:"in one of these states"`
}

type runsOutput struct {
	Body struct {
		Runs []Run  `json:"runs" doc:"the newest first"`
		Next string `json:"next,omitempty" doc:"the cursor of the next page; none: that is all"`
	}
}

// ByID names what a route is about.
type ByID struct {
	ID string `path:"id" maxLength:"36"`
}

type oneRunOutput struct {
	Status int
	Body   Run
}

func (s *Server) routeRuns() {
	huma.Register(s.api, op(http.MethodGet, "/api/v1/runs", "list-runs", "The runs of all jobs, or of one"), s.listRuns)
	huma.Register(s.api, op(http.MethodGet, "/api/v1/runs/{id}", "get-run", "One run"), func(ctx context.Context, in *ByID) (*oneRunOutput, error) {
		ctx, cancel := asking(ctx)
		defer cancel()
		run, err := s.run.Book().Run(ctx, in.ID)
		return &oneRunOutput{Status: http.StatusOK, Body: runOf(run)}, refusal(err)
	})
	cancelRun := op(http.MethodPost, "/api/v1/runs/{id}/cancel", "cancel-run", "End a run", http.StatusConflict)
	cancelRun.DefaultStatus = http.StatusAccepted
	huma.Register(s.api, cancelRun, func(ctx context.Context, in *ByID) (*oneRunOutput, error) {
		call, cancel := asking(ctx)
		defer cancel()
		run, err := s.run.Cancel(call, in.ID, callerOf(ctx).name)
		return &oneRunOutput{Status: http.StatusAccepted, Body: runOf(run)}, refusal(err)
	})
	log := op(http.MethodGet, "/api/v1/runs/{id}/log", "get-log", "What a run says")
	log.Description = "The end of its output, as text. With follow=true the answer goes on until the run has ended."
	log.Responses = map[string]*huma.Response{"200": {Description: "the log", Content: map[string]*huma.MediaType{"text/plain; charset=utf-8": {Schema: &huma.Schema{Type: "string"}}}}}
	huma.Register(s.api, log, s.getLog)
}

func (s *Server) listRuns(ctx context.Context, in *runsInput) (*runsOutput, error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	var runs iter.Seq2[book.Run, error]
	if in.Job != "" {
		state, _, err := s.run.Book().Job(ctx, in.Job)
		if err != nil {
			return nil, refusal(err)
		}
		runs = s.run.Book().RunsOf(ctx, older(state.Runs, after))
	} else {
		runs = s.run.Book().Runs(ctx)
	}
	out := &runsOutput{}
	out.Body.Runs = []Run{}
	for run, err := range runs {
		switch {
		case err != nil:
			return nil, refusal(err)
		case after != "" && run.ID >= after, len(in.State) > 0 && !slices.Contains(in.State, string(run.State)):
			continue
		}
		if len(out.Body.Runs) == in.Limit {
			out.Body.Next = cursor(out.Body.Runs[in.Limit-1].ID)
			break
		}
		out.Body.Runs = append(out.Body.Runs, runOf(run))
	}
	return out, nil
}

// older returns those of ids, the newest first, that are older than after.
func older(ids []string, after string) []string {
	if after == "" {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id >= after })
}

type logInput struct {
	ByID
	Follow bool `query:"follow" doc:"go on until the run has ended"`
}

// logPause is how often a log that is followed is looked at.
const logPause = 500 * time.Millisecond

func (s *Server) getLog(ctx context.Context, in *logInput) (*huma.StreamResponse, error) {
	call, cancel := asking(ctx)
	defer cancel()
	if _, err := s.run.Book().Run(call, in.ID); err != nil {
		return nil, refusal(err)
	}
	first, err := s.run.Book().Log(call, in.ID)
	if err != nil {
		return nil, refusal(err)
	}
	if in.Follow && !s.sit() {
		return nil, crowded()
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		if in.Follow {
			defer s.leave()
		}
		hc.SetHeader("Content-Type", "text/plain; charset=utf-8")
		hc.SetStatus(http.StatusOK)
		at := first.Start + uint64(len(first.Data))
		if w, ok := hc.BodyWriter().(http.ResponseWriter); ok {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience))
		}
		if _, err := hc.BodyWriter().Write(first.Data); err == nil && in.Follow { // or the client has gone
			s.followLog(ctx, hc, in.ID, at)
		}
	}}, nil
}

// followLog writes what comes after at, until the run has ended.
func (s *Server) followLog(ctx context.Context, hc huma.Context, id string, at uint64) {
	w, ok := hc.BodyWriter().(http.ResponseWriter)
	if !ok {
		return
	}
	c := http.NewResponseController(w)
	for {
		run, err := s.run.Book().Run(ctx, id)
		if err != nil {
			return
		}
		log, err := s.run.Book().Log(ctx, id)
		if err != nil {
			return
		}
		end := log.Start + uint64(len(log.Data))
		if end > at {
			_ = c.SetWriteDeadline(time.Now().Add(s.patience))
			if _, err := w.Write(log.Data[max(at, log.Start)-log.Start:]); err != nil {
				return
			}
			at = end
		}
		if err := c.Flush(); err != nil || run.State.Ended() {
			return
		}
		select {
		case <-time.After(logPause):
		case <-ctx.Done():
			return
		}
	}
}

// sit takes one of the places of those who stay.
func (s *Server) sit() bool {
	select {
	case s.streams <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Server) leave() { <-s.streams }

func crowded() error {
	return problem(http.StatusServiceUnavailable, "busy", "%d streams are open", maxStreams).retry(5 * time.Second)
}
