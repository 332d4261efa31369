package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// applicationID marks a lock file in its header: "dibs".
	applicationID = 0x64696273
	// schemaVersion is the schema's, in PRAGMA user_version.
	schemaVersion = 1
)

// openMu lets one goroutine at a time make a file: closing a descriptor of a
// database drops all locks that SQLite has on it in this process.
var openMu sync.Mutex

// Open opens the lock file at path, and makes it if it is not there; it makes no
// directory. What stands in the way is an ErrRejected that says what it is, and
// nothing was changed: a directory, a device, another program's database, a text
// file, a newer schema, a network file system, a file that can't be written. opts
// may be nil.
func Open(ctx context.Context, path string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = new(Options)
	}
	path, err := checkPath(path)
	if err != nil {
		return nil, err
	}
	// Everything below may hang with the disk, so the caller does not wait for
	// it; what comes too late is closed again.
	type answer struct {
		s   *Store
		err error
	}
	got := make(chan answer)
	go func() { // until the disk has answered
		s, err := open(ctx, path, *opts)
		select {
		case got <- answer{s, err}:
		case <-ctx.Done():
			if s != nil {
				_ = s.Close()
			}
		}
	}()
	select {
	case a := <-got:
		return a.s, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("sqlite store %s: %w", path, context.Cause(ctx))
	}
}

func open(ctx context.Context, path string, opts Options) (_ *Store, err error) {
	c := opts.clock
	if c == nil {
		if c, err = newClock(); err != nil {
			return nil, driver.Unsupportedf("sqlite store %s: %v", path, err)
		}
	}
	f, err := findFile(path, opts.Force)
	if err != nil {
		return nil, err
	}
	write, err := f.connect(ctx)
	if err != nil {
		return nil, refused(f.path, err)
	}
	read, err := f.connect(ctx)
	if err != nil {
		_ = write.close()
		return nil, refused(f.path, err)
	}
	if err := f.check(); err != nil { // it is the one that was looked at
		_, _ = write.close(), read.close()
		return nil, err
	}
	s := &Store{
		path: f.path, opts: opts, clock: c, file: f,
		life:  &life{dir: f.path + "-life", bell: opts.bell},
		subs:  &subs{byID: make(map[string][]*sub)},
		feeds: &feeds{all: make(map[chan driver.Loss]bool), told: make(map[string]int)},
		stop:  make(chan struct{}),
	}
	s.write = newDesk(s, write, "begin")
	s.read = newDesk(s, read, "beginRead")
	s.look = newLookout(s)
	go s.look.run() // until s.stop is closed
	if err := s.anchor(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// anchor sets the record clock, if this is the first client since the boot. It
// waits for the write lock only then.
func (s *Store) anchor(ctx context.Context) error {
	set := false
	err := s.read.do(ctx, func(t *tx) error {
		set = t.v.meta.domain == t.domain
		return nil
	})
	if err != nil || set {
		return err
	}
	return s.write.do(ctx, (*tx).keepTime)
}

// refused is what stands in the way of opening path, as the caller is told.
func refused(path string, err error) error {
	var re *driver.RejectedError
	if errors.As(err, &re) || isBusy(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	say := func(why string) error { return driver.Rejectedf("", "sqlite store %s: %s: %w", path, why, err) }
	switch code(err) {
	case codeNotADB:
		return say("it is not a SQLite database; nothing was changed. Name another file")
	case codeCorrupt:
		return say("the database is damaged; nothing was changed. Stop its users and restore it, or move it away")
	case codeReadOnly, codePerm:
		return say("it can't be written; dibs needs to write to it and to its directory")
	case codeCantOpen:
		return say("it can't be opened; dibs needs to read and write it and to make files in its directory")
	case codeFull: // it may have room again in a moment
		return fmt.Errorf("sqlite store %s: the disk is full; free some space: %w", path, err)
	}
	return say("it can't be opened")
}

// connect opens a connection to f, and makes f a lock file if it is new.
func (f *file) connect(ctx context.Context) (*conn, error) {
	c, err := openConn(f.path)
	if err != nil {
		return nil, err
	}
	if err := retry(ctx, func() error { return f.setUp(c) }); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (f *file) setUp(c *conn) error {
	if readOnly, err := c.raw.IsReadOnly("main"); err != nil {
		return err
	} else if readOnly {
		return driver.Rejectedf("", "sqlite store %s: it can't be written; dibs needs to write to it and to its directory", f.path)
	}
	isNew, err := f.look(c)
	if err != nil {
		return err
	}
	// FULL: a token, or a record, that was answered survives a loss of power.
	if err := c.script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF"); err != nil {
		return err
	}
	if mode, err := c.ask("PRAGMA journal_mode"); err != nil {
		return err
	} else if mode != "wal" {
		return fmt.Errorf("journal mode is %v; its file system can't do WAL", mode)
	}
	if isNew {
		return f.create(c)
	}
	return nil
}

// look is identify in a transaction of its own: another process may be making the
// schema.
func (f *file) look(c *conn) (isNew bool, err error) {
	if err := c.script("BEGIN"); err != nil {
		return false, err
	}
	isNew, err = f.identify(c)
	if e := c.script("ROLLBACK"); err == nil {
		err = e
	}
	return isNew, err
}

// identify tells whether the database is new, that is, empty. It changes nothing,
// and refuses what is not a lock file.
func (f *file) identify(c *conn) (isNew bool, err error) {
	app, err := c.askInt("PRAGMA application_id")
	if err != nil {
		return false, err
	}
	version, err := c.askInt("PRAGMA user_version")
	if err != nil {
		return false, err
	}
	tables, err := c.askInt("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return false, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return true, nil
	case app != applicationID:
		return false, driver.Rejectedf("", "sqlite store %s: it is another program's database (application id %#x, %d tables and indexes); nothing was changed. Name another file", f.path, app, tables)
	case version > schemaVersion:
		return false, driver.Rejectedf("", "sqlite store %s: a newer dibs made it (schema %d, this one knows %d); nothing was changed. Upgrade this one", f.path, version, schemaVersion)
	case version < schemaVersion:
		return false, driver.Rejectedf("", "sqlite store %s: its schema %d is unknown", f.path, version)
	}
	return false, nil
}

// create makes the schema, unless another process was faster.
func (f *file) create(c *conn) (err error) {
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.script("ROLLBACK")
		}
	}()
	if isNew, err := f.identify(c); err != nil || !isNew {
		if err == nil {
			err = c.script("COMMIT")
		}
		return err
	}
	return c.script(schemaSQL + fmt.Sprintf("; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", applicationID, schemaVersion))
}

// retry repeats try while another process has the file locked.
func retry(ctx context.Context, try func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := try()
		if !isBusy(err) {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
