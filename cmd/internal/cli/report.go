package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// The outcomes of a run.
const (
	outcomeRan     = "ran"     // the command ran to its end
	outcomeSkipped = "skipped" // the key is held elsewhere, or the wait is over
	outcomeTimeout = "timeout" // --timeout
	outcomeLost    = "lost"    // the lock was lost, and the command stopped
	outcomeError   = "error"   // all else: the command was not started, or its end isn't known
)

// A report is how a run ended. It is the JSON of --report.
type report struct {
	Outcome  string       `json:"outcome"`
	ExitCode int          `json:"exit_code"`         // of dibs
	Command  *int         `json:"command_exit_code"` // null: it was not started, or its end isn't known
	Key      string       `json:"key"`
	RunID    string       `json:"run_id"`
	Mode     string       `json:"mode"`
	Store    string       `json:"store"`  // without a password
	Fence    string       `json:"fence"`  // "": never held, or nothing to fence with
	Token    string       `json:"token"`  // "": never held, or several were
	Holder   *claimStatus `json:"holder"` // who is in the way, of skipped; null: not known
	Waited   int64        `json:"waited_ms"`
	Ran      int64        `json:"ran_ms"`
	Began    *time.Time   `json:"began_at"`
	Ended    *time.Time   `json:"ended_at"`
	Message  string       `json:"message"` // what went wrong, for people

	Fences map[string]string `json:"fences,omitempty"`         // of each, of several keys
	Retry  int64             `json:"retry_after_ms,omitempty"` // of a limit that is used up

	started time.Time
}

// granted notes what was held.
func (p *report) granted(l *dibs.Lease, names []string) {
	fences := l.Fences()
	if f := fences[names[0]]; f != 0 {
		p.Fence = strconv.FormatUint(f, 10)
	}
	if len(names) == 1 {
		p.Token = strconv.FormatUint(l.Token(), 10)
		return
	}
	p.Fences = make(map[string]string)
	for name, f := range fences {
		p.Fences[name] = strconv.FormatUint(f, 10)
	}
}

// ran notes how the command ended.
func (p *report) ran(s *supervisor) {
	p.Ran, p.Message = time.Since(p.started).Milliseconds(), s.said
	if code, err := s.process.Code(); err == nil {
		p.Command = &code
	}
	switch {
	case s.code == exitTimeout:
		p.Outcome = outcomeTimeout
	case s.code == exitLost:
		p.Outcome = outcomeLost
	case p.Command != nil:
		p.Outcome = outcomeRan
	}
}

// finish completes the report.
func (p *report) finish(err error) {
	p.Ended = utc(time.Now())
	code, text := verdict(err)
	p.ExitCode, p.Message = code, cmp.Or(text, p.Message)
	p.Outcome = cmp.Or(p.Outcome, outcomeError)
}

// checkReport refuses a path that can't be written later, while nothing has been
// done.
func checkReport(path string) error {
	if err := checkSink("--report", path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return failf(exitNoStateDir, "can't write --report: %s is a directory; nothing was run", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failf(exitNoStateDir, "can't write --report: %v; nothing was run", err)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !writable(dir) {
		return failf(exitNoStateDir, "can't write --report: no file can be made in %s; nothing was run", dir)
	}
	return nil
}

// write replaces the file at path: who reads it finds the old report or this one.
// What is no file, such as a pipe, is written to.
func (p *report) write(path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe may have lost its reader
		if err != nil {
			return err
		}
		return errors.Join(printJSON(f, p), f.Close())
	}
	// With the mode that the umask leaves, as any file that is made anew.
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+p.RunID)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(printJSON(f, p), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// told does a run, or what goes for one, and writes its --report and --events.
func (r *runner) told(run func() error) error {
	id, err := uuid.NewV7()
	if err != nil {
		return failf(exitFailed, "can't make a run id: %v; nothing was run", err)
	}
	r.runID = id.String()
	r.result = report{RunID: r.runID, Began: utc(time.Now())}
	if r.report.value != "" {
		if err := checkReport(r.report.value); err != nil {
			return err
		}
	}
	err = run()
	if r.dryRun {
		return err
	}
	r.result.Key, r.result.Mode = r.key, r.mode()
	if r.place.url != "" {
		r.result.Store = driver.Redact(r.place.url)
	}
	r.result.finish(err)
	r.events.add(event{Event: "end", Outcome: r.result.Outcome, ExitCode: &r.result.ExitCode, Message: r.result.Message})
	r.events.close()
	if r.report.value != "" {
		if err := r.result.write(r.report.value); err != nil {
			say(r.stderr, "warning: no --report: %v", err)
		}
	}
	return err
}
