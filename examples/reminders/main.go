// Command reminders is what cron starts on three instances every day, and what
// sends each customer one reminder and not three.
//
// A lock alone is not enough: an instance whose clock is late starts when the first
// has already finished and let go. So the run of a day is something that is done
// once, and whoever comes later finds that it was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	day    = flag.String("day", time.Now().Format(time.DateOnly), "the day that cron runs this for")
	outbox = flag.String("outbox", "reminders.log", "`file` that stands for the mail server")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	ran, err := c.Once("invoice-reminders/"+*day, 7*24*time.Hour).TryDo(ctx, sendAll)
	switch {
	case errors.Is(err, dibs.ErrHeld):
		fmt.Println("skipped: another instance is at it:", err)
		return nil
	case err != nil:
		return err // what was sent is sent: the next run goes on behind it
	case !ran:
		fmt.Println("skipped: it was done before")
	default:
		fmt.Println("sent")
	}
	return nil
}

// sendAll sends a reminder for each invoice that is due. ctx ends if the lock is
// lost: then another instance may be sending by now.
func sendAll(ctx context.Context) error {
	for _, invoice := range []string{"ann 2026-017", "bob 2026-018", "cleo 2026-021"} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := app.Append(*outbox, *day+": "+invoice); err != nil {
			return err
		}
	}
	return nil
}
