package pglock

import (
	"context"
	"net/url"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// Init makes the schema of a lease table in the database that rawURL names (see
// Open of package driver; the parameter schema chooses its name, dibs by default).
// It is for a role that may create schemas; the roles that use the store need only
// what [Grants] says. A schema that is there already is left as it is.
func Init(ctx context.Context, rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return driver.Rejectedf("", "the store's URL can't be parsed")
	}
	p, err := readURL(u, func(p *driver.Params) {
		p.String("journal", "")
		p.String("create", "")
		p.String("fence", "")
		p.String("hash", "")
		p.String("key", "")
		p.String("layout", "")
		p.String("sessions", "")
	})
	if err != nil {
		return err
	}
	return initSchema(ctx, p)
}

// Grants is the SQL that lets a role use the store in a schema, and do nothing
// else: the names are put in as they are.
func Grants(schema, role string) string {
	sql := strings.ReplaceAll(inSchema(grantsSQL, schema), "@", schema)
	var kept []string
	for line := range strings.SplitSeq(sql, "\n") {
		if line != "" && !strings.HasPrefix(line, "--") {
			kept = append(kept, strings.ReplaceAll(line, "ROLE", role))
		}
	}
	return strings.Join(kept, "\n")
}

// initSchema makes the schema, all of it or nothing, unless it is there.
func initSchema(ctx context.Context, p *params) error {
	d := tableDialer(p)
	s, err := d.connect(ctx)
	if err != nil {
		return unknown(err)
	}
	defer s.bye()
	sql := parseStatements(statementsSQL, p.schema)
	err = checkSchema(ctx, s, sql, p.schema)
	if c := code(err); c != codeUndefinedTable && c != codeUndefinedSchema {
		if err != nil && !driver.Certain(err) {
			return unknown(err)
		}
		return err
	}
	// Whoever makes the schema at the same time is waited for: two CREATE SCHEMA IF
	// NOT EXISTS at once fail.
	script := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; " +
		"SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('dibs init')); " +
		strings.ReplaceAll(inSchema(schemaSQL, p.schema), "@;", p.schema+";") + "; COMMIT"
	_, err = s.PgConn().Exec(ctx, script).ReadAll()
	if err == nil {
		return nil
	}
	made := code(err)
	if _, e := s.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); e != nil {
		return unknown(e)
	}
	if made == codeDuplicateTable { // another was faster
		return checkSchema(ctx, s, sql, p.schema)
	}
	if err := refusedForGood(p.schema, err); err != nil {
		return err
	}
	return unknown(err)
}
