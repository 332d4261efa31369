package cli

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// Events write what happens to a run into a file, a JSON object a line. A nil
// *events writes nothing.
type events struct {
	f      *os.File
	stderr io.Writer
	key    string
	runID  string

	mu     sync.Mutex // guards failed, and keeps the lines in order
	failed bool
}

// An event is a line of --events.
type event struct {
	At    *time.Time `json:"at"` // this host's clock
	Event string     `json:"event"`
	Key   string     `json:"key"`
	RunID string     `json:"run_id"`

	Sleep     int64  `json:"sleep_ms,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Fence     string `json:"fence,omitempty"`
	Token     string `json:"token,omitempty"`
	Waited    *int64 `json:"waited_ms,omitempty"`
	Pid       int    `json:"pid,omitempty"`
	Signal    string `json:"signal,omitempty"`
	Command   *int   `json:"command_exit_code,omitempty"`
	Confirmed *bool  `json:"confirmed,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Message   string `json:"message,omitempty"`
}

// openEvents appends to the file at path.
func openEvents(path, key, runID string, stderr io.Writer) (*events, error) {
	if err := checkSink("--events", path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, failf(exitNoStateDir, "can't write --events: %v; nothing was run", err)
	}
	return &events{f: f, stderr: stderr, key: key, runID: runID}, nil
}

// add writes one event. A file that can't be written does not end the run.
func (e *events) add(what event) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed {
		return
	}
	what.At, what.Key, what.RunID = utc(time.Now()), e.key, e.runID
	var line bytes.Buffer
	err := printJSON(&line, what)
	if err == nil {
		_, err = e.f.Write(line.Bytes()) // one write, so that several runs may share a file
	}
	if err != nil {
		e.failed = true
		say(e.stderr, "warning: no more --events: %v", err)
	}
}

func (e *events) close() {
	if e != nil {
		_ = e.f.Close()
	}
}
