package pglock

import (
	_ "embed"
	"strings"
)

//go:embed statements.sql
var statementsSQL string

//go:embed advisory.sql
var advisorySQL string

//go:embed xact.sql
var xactSQL string

//go:embed schema.sql
var schemaSQL string

//go:embed grants.sql
var grantsSQL string

// statements are the named statements of a file.
type statements map[string]string

// parseStatements reads a file of statements, with schema in the place of @.
func parseStatements(text, schema string) statements {
	all := make(statements)
	for _, part := range strings.Split(text, "\n--: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		var kept []string
		for line := range strings.SplitSeq(body, "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line), "--") {
				kept = append(kept, line)
			}
		}
		body = strings.TrimSuffix(strings.TrimSpace(strings.Join(kept, "\n")), ";")
		all[name] = inSchema(body, schema)
	}
	return all
}

// inSchema puts a schema's name in the place of @.
func inSchema(sql, schema string) string { return strings.ReplaceAll(sql, "@.", schema+".") }

// named returns a statement; a name that is not there is a programmer's mistake.
func (s statements) named(name string) string {
	sql, ok := s[name]
	if !ok {
		panic("pglock: no statement " + name)
	}
	return sql
}
