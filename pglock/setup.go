package pglock

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

func init() {
	driver.RegisterSetup("postgres", planSetup)
	driver.RegisterSetup("postgresql", planSetup)
	driver.RegisterSetup("pgadvisory", planSetup)
}

// planSetup tells what a database needs before it can be a store.
func planSetup(u *url.URL) (driver.Setup, error) {
	fenced := u.Query().Get("fence") != "off"
	p, err := readURL(u, takeAll)
	if err != nil {
		return driver.Setup{}, err
	}
	advisory := u.Scheme == "pgadvisory"
	if !advisory && u.Query().Get("layout") == layoutShedlock {
		table, err := p.shedlock(u, readShedParams(driver.NewParams(u)))
		if err != nil {
			return driver.Setup{}, err
		}
		return table.setup(p), nil
	}
	if advisory && !fenced {
		return driver.Setup{}, nil // PostgreSQL's own locks are everybody's
	}
	return driver.Setup{
		Makes:  fmt.Sprintf("the schema %s, version %d, in the database %s", p.bare, schemaVersion, p.conn.Database),
		Script: initScript(p.schema),
		Make:   func(ctx context.Context) (bool, error) { return initSchema(ctx, p) },
		Rights: func(user string) string {
			if advisory {
				return advisoryGrants(p.schema, roleName(user))
			}
			return Grants(p.schema, roleName(user))
		},
	}, nil
}

// advisoryGrants are those of Grants that pgadvisory:// needs.
func advisoryGrants(schema, role string) string {
	var kept []string
	for line := range strings.SplitSeq(Grants(schema, role), "\n") {
		if strings.Contains(line, " SCHEMA ") || strings.Contains(line, ".fences ") || strings.Contains(line, ".tokens ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// roleName is a role as SQL has it.
func roleName(role string) string {
	if plainName.MatchString(role) {
		return role
	}
	return pgx.Identifier{role}.Sanitize()
}
