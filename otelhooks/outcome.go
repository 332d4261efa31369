package otelhooks

import (
	"errors"

	"github.com/dibslock/dibs"
)

// How an acquire can end.
const (
	granted  = "granted"
	held     = "held"     // TryLock: another is in the way
	gaveUp   = "gave_up"  // Lock: the ctx ended first
	unknown  = "unknown"  // the store gave no clear answer
	rejected = "rejected" // the store, or dibs, won't do it
	closed   = "closed"   // the client was closed
)

func outcomeOf(err error) string {
	_, waited := errors.AsType[*dibs.WaitError](err)
	switch {
	case err == nil:
		return granted
	case errors.Is(err, dibs.ErrClosed):
		return closed
	case waited:
		return gaveUp
	case errors.Is(err, dibs.ErrHeld):
		return held
	case errors.Is(err, dibs.ErrUnknown):
		return unknown
	}
	return rejected
}
