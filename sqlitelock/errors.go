package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"modernc.org/sqlite"

	"github.com/dibslock/dibs/driver"
)

// The primary result codes of SQLite that matter here.
const (
	codePerm     = 3
	codeBusy     = 5
	codeReadOnly = 8
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

// errHung is what Close says if it gave up.
var errHung = errors.New("the disk did not answer; what was under way is left behind")

// code is the primary result code of err, or 0.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { return err != nil && code(err) == codeBusy }

// unknown is an answer that says: it may have been applied.
func (s *Store) unknown(err error) error {
	return fmt.Errorf("sqlite store %s: %w", s.path, err)
}

// failed is what the operations of a failed transaction are told. Only an error
// from before the commit is certain, and only one that stays is a rejection: a
// full disk may have room again in a moment.
func (s *Store) failed(err error) error {
	var ce *commitError
	var re *driver.RejectedError
	switch {
	case errors.Is(err, driver.ErrClosed):
		return driver.ErrClosed
	case errors.As(err, &re):
		return err
	case errors.As(err, &ce):
		return s.unknown(err)
	}
	switch code(err) {
	case codeCorrupt, codeNotADB:
		return driver.Rejectedf("", "sqlite store %s: the file is damaged: %w; nothing was changed. Stop its users and restore it, or move it away", s.path, err)
	case codeReadOnly, codePerm:
		return driver.Rejectedf("", "sqlite store %s: the file, or its file system, can't be written: %w", s.path, err)
	case codeFull:
		return s.unknown(fmt.Errorf("the disk is full; nothing was changed: %w", err))
	}
	return s.unknown(err)
}

// makeLife makes the life file, if it is not there yet.
func (s *Store) makeLife() error {
	err := s.life.create()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errNoDir):
		return driver.Rejectedf("", "sqlite store %s: %w", s.path, err)
	}
	return s.unknown(err)
}

func checkRevocation(r driver.Revocation) error {
	if err := driver.CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Reason) > driver.MaxNote || !utf8.ValidString(r.Reason) {
		return driver.Rejectedf(r.Name, "the reason must be valid UTF-8 of at most %d bytes", driver.MaxNote)
	}
	return nil
}
