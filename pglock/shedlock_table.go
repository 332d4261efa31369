package pglock

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

//go:embed shedlock.sql
var shedlockSQL string

const (
	layoutLease    = "lease"
	layoutShedlock = "shedlock"
)

// codeNoConflict is PostgreSQL's answer to an ON CONFLICT without an index.
const codeNoConflict = "42P10"

// A shedTable is where a table of ShedLock is, and what its columns can hold.
type shedTable struct {
	name                string // with its schema, quoted
	schema              string // quoted
	key, until, at, who string // the columns, quoted
	zone                string // the time zone of the other programs' sessions; "": not told
	width               int    // characters of a name
	unit                int64  // microseconds that the columns of time can tell apart
}

var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]{0,63}$`)

// shedParams are the parameters that only the layout has.
type shedParams struct{ table, columns, zone string }

func readShedParams(p *driver.Params) shedParams {
	return shedParams{p.String("table", ""), p.String("columns", ""), p.String("zone", "")}
}

// none tells whether none was given.
func (x shedParams) none() bool { return x == shedParams{} }

// shedlock is the table that a URL means.
func (p *params) shedlock(u *url.URL, x shedParams) (shedTable, error) {
	if !u.Query().Has("schema") {
		p.bare, p.schema = "public", "public" // ShedLock's own default
	}
	if x.table == "" {
		x.table = "shedlock"
	}
	if x.columns == "" {
		x.columns = "name,lock_until,locked_at,locked_by"
	}
	columns := strings.Split(x.columns, ",")
	bad := func(format string, args ...any) (shedTable, error) {
		return shedTable{}, driver.Rejectedf("", "the store's URL: "+format, args...)
	}
	for _, word := range append([]string{x.table}, columns...) {
		if !schemaName.MatchString(word) {
			return bad("table and columns: %q: want a lower-case letter or _, then up to 40 of a-z, 0-9 and _", word)
		}
	}
	switch {
	case len(columns) != 4:
		return bad("columns=%s: want four with commas between, in the order name,lock_until,locked_at,locked_by", x.columns)
	case x.zone != "" && !zoneName.MatchString(x.zone):
		return bad("zone=%s: want the name of a time zone, such as UTC", x.zone)
	}
	quote := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	return shedTable{
		name: p.schema + "." + quote(x.table), schema: p.schema,
		key: quote(columns[0]), until: quote(columns[1]), at: quote(columns[2]), who: quote(columns[3]),
		zone: x.zone,
	}, nil
}

// statements are those of shedlock.sql for the table.
func (x shedTable) statements() statements {
	micros := func(column string) string {
		return "(extract(epoch FROM least(greatest(t." + column + "::timestamp, 'epoch'), '9999-01-01')) * 1000000)::bigint"
	}
	text := strings.NewReplacer(
		"{table}", x.name, "{name}", x.key, "{until}", x.until, "{at}", x.at, "{by}", x.who,
		"{until µs}", micros(x.until), "{at µs}", micros(x.at),
	).Replace(shedlockSQL)
	return parseStatements(text, x.schema)
}

// dialer makes sessions in the time zone of the others: what they write into a
// column with a time zone is the time of UTC, taken for one of theirs.
func (x shedTable) dialer(p *params) *dialer {
	d := tableDialer(p)
	zone := x.zone
	if zone == "" {
		zone = "UTC"
	}
	d.settings += fmt.Sprintf("; SET TimeZone = '%s'", zone)
	d.local += fmt.Sprintf(", pg_catalog.set_config('TimeZone', '%s', true)", zone)
	return d
}

// look reads what the table's columns are, and refuses what can't be shared.
func (x *shedTable) look(ctx context.Context, c *session, sql statements) error {
	bare := func(quoted string) string { return strings.Trim(quoted, `"`) }
	names := []string{bare(x.key), bare(x.until), bare(x.at), bare(x.who)}
	type column struct {
		kind   string
		mod    int
		unique bool
	}
	found := make(map[string]column)
	err := c.run(ctx, sql.named("columns"), []any{x.name, names}, func(rows pgx.Rows) error {
		var name string
		var one column
		err := rows.Scan(&name, &one.kind, &one.mod, &one.unique)
		found[name] = one
		return err
	})
	if err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return driver.Rejectedf("", "postgres: the table %s: %s", x.name, fmt.Sprintf(format, args...))
	}
	if len(found) == 0 {
		return bad("it is not there, or has none of ShedLock's columns; make it with dibs store init, or name it by schema=, table= and columns=")
	}
	x.width, x.unit = driver.MaxName, 1
	for i, name := range names {
		one, ok := found[name]
		text := one.kind == "text" || one.kind == "character varying"
		switch {
		case !ok:
			return bad("there is no column %s; columns= says what they are called", name)
		case i == 0 && !one.unique:
			return bad("the column %s is no primary key, and has no unique index of its own: two rows of one name would be two locks", name)
		case (i == 0 || i == 3) && !text:
			return bad("the column %s is %s; want varchar", name, one.kind)
		case i == 0 && one.mod > 0:
			x.width = one.mod - 4
		case i == 3 && one.mod > 0 && one.mod-4 < shedBy:
			return bad("the column %s has %d characters; want varchar(%d), as ShedLock's documentation has it", name, one.mod-4, shedBy)
		case i == 0 || i == 3:
		case one.kind == "timestamp with time zone" && x.zone == "":
			return bad("the column %s has a time zone, and ShedLock writes times of UTC into it as if they were of its session's zone: add zone=UTC to the store's URL if all sessions of the other programs are in UTC, or their zone", name)
		case one.kind != "timestamp with time zone" && one.kind != "timestamp without time zone":
			return bad("the column %s is %s; want timestamp", name, one.kind)
		case one.mod >= 0 && one.mod < 3:
			return bad("the column %s knows no milliseconds; want timestamp", name)
		case one.mod >= 0:
			for range 6 - one.mod {
				x.unit = max(x.unit, 1) * 10
			}
		}
	}
	x.unit = min(x.unit, 1000)
	return nil
}

// fits is nil if name is not too long for the table.
func (x shedTable) fits(name string) error {
	if utf8.RuneCountInString(name) > x.width {
		return driver.Rejectedf(name, "%s", x.tooLong())
	}
	return nil
}

func (x shedTable) tooLong() string {
	return fmt.Sprintf("names have at most %d characters, which is the width of ShedLock's column", x.width)
}

// refusedForGood is a *driver.RejectedError if asking again does not help; or nil.
func (x shedTable) refusedForGood(err error) error {
	switch code(err) {
	case codeUndefinedSchema:
		return driver.Rejectedf("", "postgres: the table %s: %w; make the schema, or name another by schema=", x.name, err)
	case codeUndefinedTable, codeNoConflict:
		return driver.Rejectedf("", "postgres: the table %s: %w; make it with dibs store init", x.name, err)
	case codePrivilege:
		return denied(fmt.Errorf("the role may not do this: %w; what it needs: %s", err, x.grants("ROLE")))
	}
	return nil
}

// grants is the SQL that lets a role use the table.
func (x shedTable) grants(role string) string {
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;\nGRANT SELECT, INSERT, UPDATE ON %s TO %[2]s;", x.schema, role, x.name)
}

// make makes the table unless it is there, and tells whether it was not.
func (x shedTable) make(ctx context.Context, p *params) (made bool, err error) {
	s, err := x.dialer(p).connect(ctx)
	if err != nil {
		if e := refusedForGood(p.schema, err); e != nil {
			return false, e
		}
		return false, unknown(err)
	}
	defer s.bye()
	sql := x.statements()
	there := false
	err = s.run(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", []any{x.name}, func(rows pgx.Rows) error { return rows.Scan(&there) })
	if err == nil && !there {
		_, err = s.PgConn().Exec(ctx, sql.named("create")).ReadAll()
	}
	if err != nil {
		if e := x.refusedForGood(err); e != nil {
			return false, e
		}
		return false, unknown(err)
	}
	return !there, x.look(ctx, s, sql)
}

// setup is what dibs store init does.
func (x shedTable) setup(p *params) driver.Setup {
	return driver.Setup{
		Makes:  fmt.Sprintf("the table %s of ShedLock, in the database %s", x.name, p.conn.Database),
		Script: x.statements().named("create") + ";\n",
		Make:   func(ctx context.Context) (bool, error) { return x.make(ctx, p) },
		Rights: func(user string) string { return x.grants(roleName(user)) },
	}
}
