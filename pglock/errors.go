package pglock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

// The SQLSTATEs that matter here.
const (
	codeSerialization   = "40001"
	codeDeadlock        = "40P01"
	codeDivision        = "22012" // our own: see the statement write
	codeLockTimeout     = "55P03"
	codeLimit           = "54000" // the queue of notifications is full
	codeReadOnly        = "25006"
	codeAborted         = "25P02"
	codeUndefinedTable  = "42P01"
	codeUndefinedSchema = "3F000"
	codeDuplicateTable  = "42P07"
	codePrivilege       = "42501"
	codePassword        = "28P01"
	codeNoLogin         = "28000"
	codeNoDatabase      = "3D000"
)

// code is the SQLSTATE of err, or "".
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// errStandby: the server takes no writes, and its advisory locks are its own.
var errStandby = errors.New("the server is a standby (in recovery): connect to the primary")

// unknown is an answer that says: it may have been applied. A cause that would be
// a certain answer is told in words only.
func unknown(err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return driver.ErrClosed
	}
	if driver.Certain(err) {
		return fmt.Errorf("postgres: outcome unknown: %v", err)
	}
	return fmt.Errorf("postgres: %w", err)
}

// left is the answer to a caller whose ctx has ended.
func left(ctx context.Context) error { return unknown(context.Cause(ctx)) }

// refusedForGood is a *driver.RejectedError if err, of a statement that was
// certainly not applied, is one that asking again does not help; or nil.
func refusedForGood(schema string, err error) error {
	switch code(err) {
	case codeUndefinedTable, codeUndefinedSchema:
		return driver.Rejectedf("", "postgres: the schema %s is not there, or is not a dibs store: %w; create it once with dibs store init, pglock.Init, or by opening the store with ?create=on, as a role that may create schemas", schema, err)
	case codePrivilege:
		return denied(fmt.Errorf("the role may not do this: %w; what it needs: %s", err, Grants(schema, "ROLE")))
	case codePassword, codeNoLogin:
		return denied(err)
	case codeNoDatabase:
		return driver.Rejectedf("", "postgres: %w", err)
	}
	return nil
}

// denied is a rejection for want of a right: an fs.ErrPermission too.
func denied(err error) error {
	return &driver.RejectedError{Why: "postgres: " + err.Error(), Err: errors.Join(fs.ErrPermission, err)}
}
