package drivertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// stormEnv makes a test binary a contender: it is the URL of its store.
const stormEnv = "DIBS_STORM_URL"

// StormMain makes this process one that Storm starts, if it is to be one, and then
// never returns. Call it first thing in TestMain.
func StormMain() {
	rawURL := os.Getenv(stormEnv)
	if rawURL == "" {
		return
	}
	if err := contend(context.Background(), rawURL, os.Args[1:]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// stormFull is the capacity of whatever a storm is about.
const stormFull = 8

// contend holds something until its input ends: it says when it begins to wait,
// when it holds, and when it has lost. args are what kind of thing, its name, how
// much of it, and the TTL.
func contend(ctx context.Context, rawURL string, args []string) error {
	kind, name := args[0], args[1]
	units, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ttl, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	store, err := driver.Open(ctx, rawURL)
	if err != nil {
		return err
	}
	client, err := dibs.New(store, &dibs.Options{Settings: dibs.Settings{TTL: ttl}})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	go func() { // ends with whoever started this process
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	hold := func(held context.Context) error {
		fmt.Println("held")
		<-held.Done()
		fmt.Println("lost")
		return ctx.Err()
	}
	fmt.Println("waits")
	for ctx.Err() == nil && err == nil {
		switch kind {
		case "leadership":
			err = client.Election(name).Lead(ctx, hold)
		case "reader":
			err = client.Reader(name).Do(ctx, hold)
		case "writer":
			err = client.Writer(name).Do(ctx, hold)
		default:
			err = client.Semaphore(name, stormFull, units).Do(ctx, hold)
		}
		if errors.Is(err, dibs.ErrLost) || errors.Is(err, dibs.ErrUnknown) {
			err = nil
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, client.Close(context.WithoutCancel(ctx)), store.Close())
}

// A contender is a process that contends, as Storm sees it.
type contender struct {
	cmd          *exec.Cmd
	units        int
	waits, holds bool // it has said so
}

// A word is what a contender says: "waits", "held", "lost"; or that it is gone.
type word struct {
	from *contender
	text string
}

// start starts a contender, whose words come through words. It is killed when the
// test ends.
func start(t testing.TB, rawURL, kind, name string, units int, ttl time.Duration, words chan word) *contender {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &contender{cmd: exec.Command(exe, kind, name, strconv.Itoa(units), ttl.String()), units: units}
	c.cmd.Env = append(os.Environ(), stormEnv+"="+rawURL)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cmd.StdinPipe(); err != nil { // its end is this process's
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { // ends with the process, and who listens to it
		defer close(gone)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			words <- word{c, lines.Text()}
		}
		_ = c.cmd.Wait() // mostly it was killed
		words <- word{c, "gone"}
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may be gone
		for over := false; !over; {
			select {
			case <-words: // nobody listens any more
			case <-gone:
				over = true
			}
		}
	})
	return c
}
