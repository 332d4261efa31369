package runner

import (
	"context"
	"time"

	"github.com/dibslock/dibs/cmd/internal/book"
	"github.com/dibslock/dibs/cmd/internal/executor"
)

// logPause is how often a log is written while the work goes on.
const logPause = time.Second

// An output is what a run says, on its way into the book.
type output struct {
	r    *Runner
	run  book.Run
	tail *executor.Tail
	quit chan struct{}
	done chan struct{}
	sent uint64 // how many bytes are written
}

func (r *Runner) newOutput(run book.Run, most int) *output {
	o := &output{r: r, run: run, tail: executor.NewTail(most), quit: make(chan struct{}), done: make(chan struct{})}
	go o.flush() // ends in close
	return o
}

func (o *output) flush() {
	defer close(o.done)
	tick := time.NewTicker(logPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			o.put()
		case <-o.quit:
			o.put()
			return
		}
	}
}

// put writes what is new.
func (o *output) put() {
	start, data := o.tail.End()
	end := start + uint64(len(data))
	if end == o.sent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := o.r.book.PutLog(ctx, o.run.ID, book.Log{Start: start, Data: data}, o.run.Keep); err != nil {
		o.r.log.Warn("the log was not written", "run", o.run.ID, "err", err)
		return
	}
	o.sent = end
}

// close writes the rest.
func (o *output) close() {
	close(o.quit)
	<-o.done
}
