package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/config"
	"github.com/dibslock/dibs/cmd/internal/runner"
)

// A runInput asks for a run.
type runInput struct {
	Job     string `path:"jobId" maxLength:"256" doc:"the job's id, parameters filled in"`
	Key     string `header:"Idempotency-Key" maxLength:"255" doc:"repeat a request with it as often as needed: it starts one run"`
	Prefer  string `header:"Prefer" maxLength:"100" example:"wait=30" doc:"wait so many seconds for the end, at most 60"`
	Trace   string `header:"Traceparent" maxLength:"100"`
	Trigger string `header:"Dibs-Trigger" enum:"http,cli" default:"http"`
	Body    *struct {
		Params map[string]string `json:"params,omitempty" doc:"parameters that the job declares and its id doesn't give"`
	}
}

type runOutput struct {
	Status    int
	Location  string `header:"Location" doc:"the run"`
	Applied   string `header:"Preference-Applied"`
	Replayed  string `header:"Idempotent-Replayed" doc:"true: the run was started by an earlier request with this key"`
	RateLimit string `header:"RateLimit"`
	Policy    string `header:"RateLimit-Policy"`
	Body      Run
}

func (s *Server) routeRun() {
	start := op(http.MethodPost, "/run/{jobId...}", "run-job", "Start a run of a job", http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusLocked, http.StatusTooManyRequests)
	start.DefaultStatus = http.StatusAccepted
	start.MaxBodyBytes = maxBody
	start.Description = "202 and where the run is; with Prefer: wait, 200 and the run if it ended in time, also if it failed. 409: it runs already, and who has it."
	huma.Register(s.api, start, s.postRun)
	look := op(http.MethodGet, "/run/{jobId...}", "look-at-job", "How a job stands", http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests)
	look.Description = "The job with its current and its last run. A job with trigger_methods: [GET] starts a run instead, and answers as POST does."
	huma.Register(s.api, look, s.getRun)
	doc := s.api.OpenAPI().Paths["/run/{jobId...}"]
	doc.Post.Responses["200"] = &huma.Response{Description: "the run has ended", Content: doc.Post.Responses["202"].Content, Headers: doc.Post.Responses["202"].Headers}
	doc.Get.Responses["202"] = doc.Post.Responses["202"]
}

func (s *Server) postRun(ctx context.Context, in *runInput) (*runOutput, error) {
	target, ok := s.run.Config().Find(in.Job)
	if ok && !allowed(target.Job, http.MethodPost) {
		return nil, problem(http.StatusMethodNotAllowed, "", "this job is started by %s", strings.Join(target.Methods, ", "))
	}
	q := s.request(ctx, in)
	if in.Body != nil {
		q.Params = in.Body.Params
	}
	return s.start(ctx, q, in.Prefer)
}

var traceparent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func (s *Server) request(ctx context.Context, in *runInput) runner.Request {
	asked, _ := json.Marshal(in.Body) // a map's keys are in order
	sum := sha256.Sum256([]byte(in.Job + "\x00" + string(asked)))
	q := runner.Request{Job: in.Job, Trigger: in.Trigger, By: callerOf(ctx).name, Key: in.Key, Hash: hex.EncodeToString(sum[:])}
	if q.Trigger == "" {
		q.Trigger = "http"
	}
	if traceparent.MatchString(in.Trace) {
		q.Trace = in.Trace
	}
	return q
}

// start starts a run, and waits for its end if that is preferred.
func (s *Server) start(ctx context.Context, q runner.Request, prefer string) (*runOutput, error) {
	call, cancel := asking(ctx)
	a, err := s.run.Trigger(call, q)
	cancel()
	if err != nil {
		return nil, refusal(err)
	}
	out := &runOutput{Status: http.StatusAccepted, Location: "/api/v1/runs/" + a.Run.ID, Body: runOf(a.Run)}
	if a.Run.State == "" { // replayed, and forgotten since
		return nil, refusal(book.ErrNone)
	}
	out.Body.Position = a.Position
	if a.Replayed {
		out.Replayed = "true"
	}
	if target, ok := s.run.Config().Find(q.Job); ok && a.Quota != nil && target.RateLimit != nil {
		out.RateLimit, out.Policy = rateLimit(*a.Quota), ratePolicy(target.RateLimit.Runs, target.RateLimit.Per.Duration)
	}
	wait := waitOf(prefer)
	if wait == 0 {
		return out, nil
	}
	out.Applied = "wait=" + strconv.Itoa(int(wait.Seconds()))
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	run, err := s.run.Wait(wctx, a.Run.ID)
	if err == nil {
		out.Body = runOf(run)
		if run.State.Ended() {
			out.Status = http.StatusOK
		}
	}
	return out, nil // accepted, whatever the store says about it now
}

// waitOf reads Prefer: wait=N (RFC 7240).
func waitOf(prefer string) time.Duration {
	for part := range strings.SplitSeq(prefer, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if !strings.EqualFold(name, "wait") {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(value, `"`))
		if err == nil && n > 0 {
			return min(time.Duration(n)*time.Second, maxWait)
		}
	}
	return 0
}

type lookInput struct {
	Job    string `path:"jobId" maxLength:"256"`
	Prefer string `header:"Prefer" maxLength:"100"`
	Key    string `header:"Idempotency-Key" maxLength:"255"`
	Trace  string `header:"Traceparent" maxLength:"100"`

	meant bool // to start something, as far as one can tell
}

// Resolve looks at what is no input: what a browser says of the request.
func (in *lookInput) Resolve(ctx huma.Context) []error {
	header := http.Header{}
	ctx.EachHeader(header.Add)
	in.meant = ctx.Method() == http.MethodGet && deliberate(header)
	return nil
}

// A lookOutput is a job, or the run that was started.
type lookOutput struct {
	Status    int
	Location  string `header:"Location"`
	Applied   string `header:"Preference-Applied"`
	Replayed  string `header:"Idempotent-Replayed"`
	RateLimit string `header:"RateLimit"`
	Policy    string `header:"RateLimit-Policy"`
	Body      any
}

func (s *Server) getRun(ctx context.Context, in *lookInput) (*lookOutput, error) {
	target, ok := s.run.Config().Find(in.Job)
	if !ok {
		return nil, refusal(runner.ErrNoJob)
	}
	if allowed(target.Job, http.MethodGet) && in.meant {
		if err := callerOf(ctx).may(MayRun); err != nil {
			return nil, err
		}
		q := s.request(ctx, &runInput{Job: in.Job, Key: in.Key, Trace: in.Trace})
		out, err := s.start(ctx, q, in.Prefer)
		if err != nil {
			return nil, err
		}
		return &lookOutput{out.Status, out.Location, out.Applied, out.Replayed, out.RateLimit, out.Policy, out.Body}, nil
	}
	call, cancel := asking(ctx)
	defer cancel()
	job, err := s.look(call, target)
	return &lookOutput{Status: http.StatusOK, Body: job}, refusal(err)
}

// look finds out how a job stands.
func (s *Server) look(ctx context.Context, target config.Target) (Job, error) {
	v := jobOf(target.Job)
	v.ID, v.Lock = target.Name, target.Locked
	if target.Name != target.ID {
		v.Pattern = false
	}
	state, _, err := s.run.Book().Job(ctx, target.Name)
	if err != nil {
		return v, err
	}
	if p := state.Paused; p != nil {
		v.Paused = &Pause{By: p.By, Reason: p.Reason, Since: p.Since}
	}
	if target.OnConflict == "queue" {
		queued, err := s.run.Book().Queue(ctx, target.Name)
		if err != nil {
			return v, err
		}
		v.Queued = len(queued)
	}
	if next := s.run.Next(target.Job); !next.IsZero() {
		v.Next = &next
	}
	for run, err := range s.run.Book().RunsOf(ctx, state.Runs) {
		if err != nil {
			return v, err
		}
		shown := runOf(run)
		switch {
		case run.State == book.Queued:
		case run.State.Ended():
			v.Last = &shown
			return v, nil
		case v.Current == nil:
			v.Current = &shown
		}
	}
	return v, nil
}
