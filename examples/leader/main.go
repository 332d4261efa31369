// Command leader has one of any number of instances do what one must do, such as
// handing out work; the others stand by. If the leader dies another takes over; if
// it is told to end it stops first, and then lets the next one in.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	out   = flag.String("log", "leader.log", "`file` to which the leader writes its process id now and then")
	every = flag.Duration("every", time.Second, "how often")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	err := c.Election("scheduler").Lead(ctx, lead)
	if ctx.Err() != nil {
		return nil // we were told to end
	}
	return err
}

// lead works until ctx ends: then another leads, or will as soon as we return.
func lead(ctx context.Context) error {
	defer fmt.Println("not leading any more")
	for n := 0; ctx.Err() == nil; n++ {
		if err := app.Append(*out, fmt.Sprint(os.Getpid())); err != nil {
			return err // ends the campaign
		}
		if n == 0 {
			fmt.Println("leading")
		}
		select {
		case <-ctx.Done():
		case <-time.After(*every):
		}
	}
	return context.Cause(ctx)
}
