package config

import (
	"fmt"
	"strings"
	"text/template"
	"time"
)

// An Occasion is what the templates of a job can speak of.
type Occasion struct {
	JobID       string
	RunID       string
	Trigger     string    // schedule, http or cli
	ScheduledAt time.Time // the tick, in the job's time zone; for other triggers when it was asked for
	Params      map[string]string
	Fence       uint64
	Attempt     int
}

// sample is an occasion to try templates on.
func (j *Job) sample() Occasion {
	o := Occasion{JobID: j.ID, RunID: "00000000-0000-7000-8000-000000000000", Trigger: "http", ScheduledAt: time.Unix(0, 0).UTC(), Params: map[string]string{}, Fence: 1, Attempt: 1}
	for name := range j.shape.allowed {
		o.Params[name] = "x"
	}
	return o
}

func render(text string, o Occasion) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("the template can't be read: %s", strings.TrimPrefix(err.Error(), "template: :"))
	}
	var b strings.Builder
	if err := t.Execute(&b, o); err != nil {
		return "", fmt.Errorf("the template can't be filled in: %s", strings.TrimPrefix(err.Error(), "template: :"))
	}
	return b.String(), nil
}

// Argv returns the command of an occasion. No shell is between: whatever a
// parameter is, it stays within its argument.
func (j *Job) Argv(o Occasion) ([]string, error) {
	argv := make([]string, len(j.Command))
	for i, arg := range j.Command {
		var err error
		if argv[i], err = render(arg, o); err != nil {
			return nil, fmt.Errorf("argument %d of the command: %w", i, err)
		}
	}
	return argv, nil
}

// Render fills in a template of the request.
func (h *HTTP) Render(text string, o Occasion) (string, error) { return render(text, o) }
