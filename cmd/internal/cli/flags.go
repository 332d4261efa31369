package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

var errTwice = errors.New("it is given twice")

// A duration is a flag whose value must be positive. Given twice it is refused:
// one of the two was meant for something else.
type duration struct {
	time.Duration
	given bool
}

func (d *duration) Type() string { return "DUR" }

func (d *duration) String() string {
	if d.Duration == 0 {
		return ""
	}
	return short(d.Duration)
}

func (d *duration) Set(text string) error {
	if d.given {
		return errTwice
	}
	v, err := parseDuration(text)
	if err != nil {
		return err
	}
	d.Duration, d.given = v, true
	return nil
}

// parseDuration takes whole milliseconds and more: no store can count less.
func parseDuration(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if _, number := strconv.ParseFloat(text, 64); number == nil {
			return 0, fmt.Errorf("a duration needs a unit, such as %ss or %sm", text, text)
		}
		return 0, errors.New("want a duration such as 1500ms, 30s, 5m or 1h30m, of at most 290 years")
	case v <= 0:
		return 0, errors.New("it must be positive")
	case v < time.Millisecond:
		return 0, errors.New("it must be at least 1ms")
	}
	return v, nil
}

// A wait is the flag --wait[=DUR].
type wait struct {
	duration // 0: for ever
	wanted   bool
}

// waitForever is what pflag sets for a --wait without a value.
const waitForever = "forever"

// Type is empty, so that the help shows that a value needs its =.
func (w *wait) Type() string   { return "" }
func (w *wait) String() string { return "" }

func (w *wait) Set(text string) error {
	if w.wanted {
		return errTwice
	}
	w.wanted = true
	if text == waitForever {
		return nil
	}
	return w.duration.Set(text)
}

// A text is a flag that may be given once.
type text struct {
	value string
	given bool
	kind  string
}

func (t *text) Type() string   { return t.kind }
func (t *text) String() string { return t.value }

func (t *text) Set(value string) error {
	if t.given {
		return errTwice
	}
	t.value, t.given = value, true
	return nil
}

// A number is a flag for a whole number within bounds, given once.
type number struct {
	value, least, most int
	given              bool
}

func (n *number) Type() string { return "N" }

func (n *number) String() string {
	if n.value == 0 {
		return ""
	}
	return strconv.Itoa(n.value)
}

func (n *number) Set(text string) error {
	if n.given {
		return errTwice
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < n.least || v > n.most {
		return fmt.Errorf("want a whole number from %d to %d", n.least, n.most)
	}
	n.value, n.given = v, true
	return nil
}
