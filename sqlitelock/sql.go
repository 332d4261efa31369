package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"modernc.org/sqlite"
)

//go:embed schema.sql
var schemaSQL string

//go:embed statements.sql
var statementsSQL string

// statements maps a statement's name to its text.
var statements = parseStatements(statementsSQL)

func parseStatements(text string) map[string]string {
	all := make(map[string]string)
	for _, part := range strings.Split(text, "\n--: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		all[name] = strings.TrimSuffix(strings.TrimSpace(body), ";")
	}
	return all
}

// A conn is one SQLite connection, used by one goroutine at a time. It talks to
// the driver directly: database/sql would add a lock, a goroutine for each ctx
// and its own conversions to every statement, and the ctx of a caller must never
// interrupt a transaction that carries other callers' operations too.
type conn struct {
	raw   rawConn
	stmts map[string]*stmt
	lazy  bool // its transactions are not on the disk when they are committed
}

type rawConn interface {
	sqldriver.Conn
	sqldriver.ExecerContext
	FileControlDataVersion(schema string) (uint32, error)
	IsReadOnly(schema string) (bool, error)
}

type rawStmt interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

type stmt struct {
	raw  rawStmt
	args []sqldriver.NamedValue // reused: a conn runs one statement at a time
	row  []sqldriver.Value
}

// openConn opens path, which must exist.
func openConn(path string) (*conn, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw"}
	raw, err := (&sqlite.Driver{}).Open(dsn.String())
	if err != nil {
		return nil, err
	}
	rc, ok := raw.(rawConn)
	if !ok {
		_ = raw.Close()
		return nil, errors.New("the SQLite driver lacks what is needed of a connection")
	}
	return &conn{raw: rc, stmts: make(map[string]*stmt)}, nil
}

// close frees the connection; its transaction, if there is one, is rolled back.
func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.raw.Close()
	}
	return c.raw.Close()
}

// script runs SQL that is not worth preparing.
func (c *conn) script(sql string) error {
	_, err := c.raw.ExecContext(context.Background(), sql, nil)
	return err
}

// ask returns the one value that sql yields.
func (c *conn) ask(sql string) (v sqldriver.Value, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	defer s.raw.Close()
	err = s.each(func(row []sqldriver.Value) bool { v = row[0]; return true })
	return v, err
}

func (c *conn) askInt(sql string) (int64, error) {
	v, err := c.ask(sql)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("%s: %v is not a number", sql, v)
	}
	return n, nil
}

func (c *conn) prepare(sql string) (*stmt, error) {
	raw, err := c.raw.Prepare(sql)
	if err != nil {
		return nil, err
	}
	rs, ok := raw.(rawStmt)
	if !ok {
		_ = raw.Close()
		return nil, errors.New("the SQLite driver's statements take no context")
	}
	return &stmt{raw: rs}, nil
}

// stmt returns the prepared statement called name.
func (c *conn) stmt(name string) (*stmt, error) {
	if s := c.stmts[name]; s != nil {
		return s, nil
	}
	text, ok := statements[name]
	if !ok {
		panic("sqlitelock: no statement " + name)
	}
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	c.stmts[name] = s
	return s, nil
}

// run executes the statement called name.
func (c *conn) run(name string, args ...sqldriver.Value) error {
	_, err := c.exec(name, args...)
	return err
}

func (c *conn) exec(name string, args ...sqldriver.Value) (sqldriver.Result, error) {
	s, err := c.stmt(name)
	if err != nil {
		return nil, err
	}
	// The background ctx cannot end, so the driver starts no goroutine for it.
	return s.raw.ExecContext(context.Background(), s.named(args))
}

// each yields the rows of the statement called name until f returns false. A
// row's values may be used until f returns.
func (c *conn) each(name string, f func([]sqldriver.Value) bool, args ...sqldriver.Value) error {
	s, err := c.stmt(name)
	if err != nil {
		return err
	}
	return s.each(f, args...)
}

func (s *stmt) each(f func([]sqldriver.Value) bool, args ...sqldriver.Value) (err error) {
	rows, err := s.raw.QueryContext(context.Background(), s.named(args))
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	if s.row == nil {
		s.row = make([]sqldriver.Value, len(rows.Columns()))
	}
	for {
		switch err := rows.Next(s.row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !f(s.row):
			return nil
		}
	}
}

func (s *stmt) named(args []sqldriver.Value) []sqldriver.NamedValue {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, sqldriver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.args
}
