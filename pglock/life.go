package pglock

import (
	"context"
	"os"
	"runtime"

	"github.com/dibslock/dibs/driver"
)

// LifeFile returns the connection of the session that holds the locks, as a file of
// its own. A session ends with the last process that has its connection: so a
// supervisor that lets a helper of its own inherit the file keeps the locks until
// that helper is gone too, and nobody else gets in while what it supervises is
// still being stopped. Nobody may read from it or write to it; the caller closes it.
// It is nil, with no error, where connections can't be shared so.
//
// It stands for the session of this moment: ask when the lock is held. With more
// than one session (sessions=) it is an [errors.ErrUnsupported].
func (a *Advisory) LifeFile() (*os.File, error) {
	if len(a.sessions) > 1 {
		return nil, driver.Unsupportedf("pgadvisory: %d sessions have no one connection to keep alive: take sessions= out of the store's URL", len(a.sessions))
	}
	ctx, cancel := context.WithTimeout(a.life, callWait)
	defer cancel()
	r := a.sessions[0].do(ctx, &request{kind: requestLife})
	return r.file, r.err
}

// file returns another descriptor of the session's connection, which no child
// inherits by itself.
func (s *session) file() (*os.File, error) {
	c, ok := s.raw.(interface{ File() (*os.File, error) })
	if !ok || runtime.GOOS == "windows" {
		return nil, nil
	}
	return c.File()
}
