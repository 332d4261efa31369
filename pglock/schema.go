package pglock

import (
	"context"
	"fmt"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// Init makes the schema of a lease table in the database that rawURL names (see
// Open of package driver; the parameter schema chooses its name, dibs by default).
// It is for a role that may create schemas; the roles that use the store need only
// what [Grants] says. A schema that is there already is left as it is. With
// layout=shedlock it makes the table of ShedLock.
func Init(ctx context.Context, rawURL string) error {
	u, err := driver.ParseURL(rawURL)
	if err != nil {
		return err
	}
	p, err := readURL(u, takeAll)
	if err != nil {
		return err
	}
	if u.Query().Get("layout") == layoutShedlock {
		table, err := p.shedlock(u, readShedParams(driver.NewParams(u)))
		if err != nil {
			return err
		}
		_, err = table.make(ctx, p)
		return err
	}
	_, err = initSchema(ctx, p)
	return err
}

// takeAll takes the parameters of both stores, whose values Open looks at.
func takeAll(p *driver.Params) {
	for _, key := range []string{"journal", "create", "fence", "hash", "key", "namespace", "layout", "sessions", "table", "columns", "zone"} {
		p.String(key, "")
	}
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

// initSchema makes the schema, all of it or nothing, unless it is there; it tells
// whether it was not.
func initSchema(ctx context.Context, p *params) (made bool, err error) {
	d := tableDialer(p)
	s, err := d.connect(ctx)
	if err != nil {
		if e := refusedForGood(p.schema, err); e != nil {
			return false, e
		}
		return false, unknown(err)
	}
	defer s.bye()
	sql := parseStatements(statementsSQL, p.schema)
	err = checkSchema(ctx, s, sql, p.schema)
	if c := code(err); c != codeUndefinedTable && c != codeUndefinedSchema {
		switch e := refusedForGood(p.schema, err); {
		case e != nil:
			return false, e
		case err != nil && !driver.Certain(err):
			return false, unknown(err)
		}
		return false, err
	}
	_, err = s.PgConn().Exec(ctx, initScript(p.schema)).ReadAll()
	if err == nil {
		return true, nil
	}
	failed := code(err)
	if _, e := s.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); e != nil {
		return false, unknown(e)
	}
	if failed == codeDuplicateTable { // another was faster
		return false, checkSchema(ctx, s, sql, p.schema)
	}
	if failed == codePrivilege {
		return false, denied(fmt.Errorf("the role may not make the schema %s: %w; as its owner or a superuser run what dibs store init --print shows, or GRANT CREATE ON DATABASE to the role", p.schema, err))
	}
	if err := refusedForGood(p.schema, err); err != nil {
		return false, err
	}
	return false, unknown(err)
}

// initScript makes a schema in one transaction. Whoever makes one at the same time
// is waited for, and for longer than a call waits for a row: two CREATE SCHEMA IF
// NOT EXISTS at once fail.
func initScript(schema string) string {
	return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;\n" +
		"SET LOCAL lock_timeout = '15s';\n" +
		"SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('dibs init'));\n" +
		strings.ReplaceAll(inSchema(schemaSQL, schema), "@;", schema+";") + "COMMIT;\n"
}
