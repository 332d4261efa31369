package web

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibslock/dibs/cmd/internal/runner"
)

type jobsOutput struct {
	Body struct {
		Jobs []Job  `json:"jobs" doc:"by id"`
		Next string `json:"next,omitempty" doc:"the cursor of the next page; none: that is all"`
	}
}

// ByJob names what a route is about.
type ByJob struct {
	ID string `path:"id" maxLength:"256" doc:"a / in it is written as %2F"`
}

type jobOutput struct{ Body Job }

type pauseInput struct {
	ByJob
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"500"`
	}
}

func (s *Server) routeJobs() {
	huma.Register(s.api, op(http.MethodGet, "/api/v1/jobs", "list-jobs", "The jobs of the configuration, and how they stand"), s.listJobs)
	huma.Register(s.api, op(http.MethodGet, "/api/v1/jobs/{id}", "get-job", "One job"), func(ctx context.Context, in *ByJob) (*jobOutput, error) {
		return s.oneJob(ctx, in.ID)
	})
	pause := op(http.MethodPost, "/api/v1/jobs/{id}/pause", "pause-job", "Keep a job from being started, on all instances", http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge)
	pause.MaxBodyBytes = maxBody
	huma.Register(s.api, pause, func(ctx context.Context, in *pauseInput) (*jobOutput, error) {
		reason := ""
		if in.Body != nil {
			reason = in.Body.Reason
		}
		call, cancel := asking(ctx)
		defer cancel()
		if _, err := s.run.Pause(call, in.ID, callerOf(ctx).name, reason); err != nil {
			return nil, refusal(err)
		}
		return s.oneJob(call, in.ID)
	})
	huma.Register(s.api, op(http.MethodPost, "/api/v1/jobs/{id}/resume", "resume-job", "Undo a pause"), func(ctx context.Context, in *ByJob) (*jobOutput, error) {
		call, cancel := asking(ctx)
		defer cancel()
		if _, err := s.run.Resume(call, in.ID, callerOf(ctx).name); err != nil {
			return nil, refusal(err)
		}
		return s.oneJob(call, in.ID)
	})
	huma.Register(s.api, op(http.MethodGet, "/api/v1/instances", "list-instances", "The instances that share the store"), s.listInstances)
}

func (s *Server) oneJob(ctx context.Context, id string) (*jobOutput, error) {
	target, ok := s.run.Config().Find(id)
	if !ok {
		if j := s.run.Config().Jobs[id]; j != nil { // a pattern, which has no runs of its own
			return &jobOutput{jobOf(j)}, nil
		}
		return nil, refusal(runner.ErrNoJob)
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	v, err := s.look(ctx, target)
	return &jobOutput{v}, refusal(err)
}

func (s *Server) listJobs(ctx context.Context, in *Page) (*jobsOutput, error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	jobs := s.run.Config().Jobs
	out := &jobsOutput{}
	out.Body.Jobs = []Job{}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		if id <= after {
			continue
		}
		if len(out.Body.Jobs) == in.Limit {
			out.Body.Next = cursor(out.Body.Jobs[in.Limit-1].ID)
			break
		}
		one, err := s.oneJob(ctx, id)
		if err != nil {
			return nil, err
		}
		out.Body.Jobs = append(out.Body.Jobs, one.Body)
	}
	return out, nil
}

type instancesOutput struct {
	Body struct {
		Instances []Instance `json:"instances"`
	}
}

func (s *Server) listInstances(ctx context.Context, _ *struct{}) (*instancesOutput, error) {
	ctx, cancel := asking(ctx)
	defer cancel()
	all, err := s.run.Book().Instances(ctx)
	if err != nil {
		return nil, refusal(err)
	}
	out := &instancesOutput{}
	out.Body.Instances = []Instance{}
	for _, in := range all {
		out.Body.Instances = append(out.Body.Instances, instanceOf(in, s.run.ID()))
	}
	return out, nil
}
