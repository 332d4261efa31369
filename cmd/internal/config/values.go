package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Duration is written as 1500ms, 30s, 10m, 24h or 30d.
type Duration struct{ time.Duration }

// UnmarshalText reads one. It must be positive.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	var v time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n float64
		if n, err = strconv.ParseFloat(days, 64); err == nil && n < 36500 {
			v = time.Duration(n * 24 * float64(time.Hour))
		}
	} else {
		v, err = time.ParseDuration(s)
	}
	switch {
	case err != nil || v == 0:
		return errors.New("want a duration such as 1500ms, 30s, 10m, 24h or 30d")
	case v < time.Millisecond:
		return errors.New("a duration must be at least 1ms")
	}
	d.Duration = v
	return nil
}

// MarshalText writes it as it would be written by hand.
func (d Duration) MarshalText() ([]byte, error) {
	if d.Duration == 0 {
		return []byte("0s"), nil
	}
	if days := d.Duration / (24 * time.Hour); days > 1 && d.Duration%(24*time.Hour) == 0 {
		return fmt.Appendf(nil, "%dd", days), nil
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return []byte(s), nil
}

// A Size is a number of bytes, written as 4096, 64KiB or 1MiB.
type Size int

// UnmarshalText reads one.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), 1
	for suffix, n := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = rest, n
			break
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || n < 1 || n > 1<<30/unit {
		return errors.New("want a size such as 4096, 64KiB or 1MiB")
	}
	*s = Size(n * unit)
	return nil
}

// MarshalText writes it with a unit.
func (s Size) MarshalText() ([]byte, error) {
	switch {
	case s != 0 && s%(1<<20) == 0:
		return fmt.Appendf(nil, "%dMiB", s>>20), nil
	case s != 0 && s%(1<<10) == 0:
		return fmt.Appendf(nil, "%dKiB", s>>10), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// A List is a list of texts, or a single one.
type List []string
