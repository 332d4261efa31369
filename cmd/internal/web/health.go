package web

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

type healthOutput struct {
	Body struct {
		Status   string `json:"status" enum:"ok"`
		Instance string `json:"instance"`
	}
}

func (s *Server) routeHealth() {
	health := func() *healthOutput {
		out := &healthOutput{}
		out.Body.Status, out.Body.Instance = "ok", s.run.ID()
		return out
	}
	huma.Register(s.api, op(http.MethodGet, "/healthz", "health", "The process is there"), func(context.Context, *struct{}) (*healthOutput, error) {
		return health(), nil
	})
	huma.Register(s.api, op(http.MethodGet, "/readyz", "readiness", "It takes requests, and its store answers"), func(context.Context, *struct{}) (*healthOutput, error) {
		if err := s.run.Ready(); err != nil {
			return nil, refusal(err)
		}
		return health(), nil
	})
}
