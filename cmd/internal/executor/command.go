package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dibslock/dibs/cmd/internal/child"
	"github.com/dibslock/dibs/cmd/internal/guard"
)

// A Command is a program that is run under the guardian.
type Command struct {
	Argv []string
	Env  []string
	Life *os.File // of the store: see guard.Spec
}

// lastOutput is how long is read on after the end of the command: a descendant
// that was not waited for may have its output open for ever.
const lastOutput = 100 * time.Millisecond

// maxPipe is how many bytes a pipe holds at the most.
const maxPipe = 1 << 20

// Run runs it to the end of its process group.
func (c Command) Run(ctx context.Context, lease Lease, limits Limits, out io.Writer) Result {
	path, err := child.Look(c.Argv[0])
	if err != nil {
		code := 127
		if errors.Is(err, child.ErrNotExecutable) {
			code = 126
		}
		return Result{End: Broken, Code: code, Reason: err.Error()}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Result{End: Broken, Code: 125, Reason: err.Error()}
	}
	defer null.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return Result{End: Broken, Code: 125, Reason: err.Error()}
	}
	defer reader.Close()
	spec := guard.Spec{Path: path, Argv: c.Argv, Env: c.Env, Life: c.Life, Files: [3]*os.File{null, writer, writer}}
	if !limits.Warn {
		spec.Limit = limits.guard(lease.Remaining())
	}
	p, err := guard.Start(spec)
	_ = writer.Close()
	if err != nil {
		return Result{End: Broken, Code: 126, Reason: fmt.Sprintf("can't execute %s: %v", path, err)}
	}
	defer p.Close()
	copied := make(chan struct{})
	go func() { // ends with the command's output, or with the reader's deadline
		defer close(copied)
		_, _ = io.Copy(out, reader)
	}()
	w := &watch{process: p, lease: lease, limits: limits}
	w.run(ctx)
	_ = reader.SetReadDeadline(time.Now().Add(lastOutput))
	<-copied
	// The deadline may have passed before all was read that the command wrote: then
	// that is in the pipe. Who writes on is not followed for ever.
	_, _ = io.CopyN(out, leftover{reader}, maxPipe)
	return w.result()
}

// guard is the limit that the guardian keeps by itself, if this process can't.
func (l Limits) guard(left time.Duration) guard.Limit {
	kill := left - l.Margin/2
	return guard.Limit{Term: kill - l.Grace, Kill: max(kill, 1)}
}
