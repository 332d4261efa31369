package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// A screen is a terminal that is drawn anew.
type screen struct {
	w       io.Writer
	fd      int
	cleared bool
}

// newScreen returns w as a screen, or nil if it can't be one.
func newScreen(w io.Writer) *screen {
	if !isTerminal(w) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &screen{w: w, fd: int(w.(*os.File).Fd())}
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// show replaces what is on the screen by text, as far as there is room.
func (s *screen) show(text string) error {
	width, height, err := term.GetSize(s.fd)
	if err != nil || width < 1 || height < 2 {
		width, height = 80, 24
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := height - 1; len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("... and %d lines more", more))
	}
	var b strings.Builder
	if !s.cleared {
		b.WriteString("\x1b[2J")
		s.cleared = true
	}
	b.WriteString("\x1b[H")
	for _, line := range lines {
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width-1]) + "…"
		}
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err = io.WriteString(s.w, b.String())
	return err
}

// draw shows what was last read, and how old it is if the store is down.
func (f *follower) draw(now time.Time, down error) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s  every %s\n", now.Format("15:04:05"), f.q.place, short(f.interval.Duration))
	if down != nil {
		fmt.Fprintf(&b, "NOT UP TO DATE: as of %s; %s\n", since(now, now.Sub(f.seen)), strings.ReplaceAll(printable(down.Error()), `\n`, "; "))
	}
	b.WriteByte('\n')
	if err := lines(&b, f.last); err != nil {
		return err
	}
	if len(f.last) == 0 {
		b.WriteString("nothing is held\n")
	}
	if err := f.screen.show(b.String()); err != nil {
		return failf(exitFailed, "can't write: %v", err)
	}
	return nil
}

// lines writes a line for each claim and each place.
func lines(w io.Writer, all []keyStatus) error {
	if len(all) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tSTATE\tMODE\tAGE\tEXPIRES\tFENCE\tHOLDER")
	row := func(key, state string, c claimStatus) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell(key), state, modeOf(c), ageOf(c, time.Second), orDash(leftOf(&c.holder)), orDash(c.Fence), orDash(printable(c.Note)))
	}
	for _, k := range all {
		for _, c := range k.Holders {
			row(k.Key, c.State, c)
		}
		for i, c := range k.Waiters {
			row(k.Key, fmt.Sprintf("%s %d", c.State, i+1), c)
		}
	}
	return t.Flush()
}
