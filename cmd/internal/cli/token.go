package cli

import (
	"errors"
	"strconv"
)

// A token is a flag, or an argument, for a token or a fence.
type token struct {
	value uint64
	given bool
}

func (t *token) Type() string { return "N" }

func (t *token) String() string {
	if t.value == 0 {
		return ""
	}
	return strconv.FormatUint(t.value, 10)
}

func (t *token) Set(text string) error {
	if t.given {
		return errTwice
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || v == 0 {
		return errors.New("want a token: a whole number from 1 to 2^64-1")
	}
	t.value, t.given = v, true
	return nil
}
