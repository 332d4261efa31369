package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Prepare a store",
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %s; usage: dibs store init", quote(args[0]))
			}
			return usagef("usage: dibs store init")
		},
	}
	cmd.AddCommand(newStoreInit())
	return cmd
}

func newStoreInit() *cobra.Command {
	i := &initializer{user: text{kind: "NAME", value: "dibs"}}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make what a store needs, and print the rights that its users need",
		Long: `Make what has to be there before a store can be used, such as the tables of
postgres://, all or nothing; what is there already stays as it is. A store that
needs nothing says so.

Then it prints, in the server's own language, the rights that a user of the store
needs and no more: GRANT for PostgreSQL, an ACL rule for Redis (with PASSWORD in
place of one). It grants nothing by itself.

The user of the URL is the one who makes it: for PostgreSQL a role that may create
schemas. The users of the store need not be that one.

With --print nothing is connected to: it prints how to make it by hand, and the
rights. With --json it prints one object with: store (url, from), makes ("":
nothing), made (false: it was there, or nothing was done), script, rights.`,
		Example: `  dibs store init -s postgres://admin@db/app --user app
  dibs store init -s postgres://db/app --print | psql -U admin app`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	i.store.kind = "URL"
	f := cmd.Flags()
	f.VarP(&i.store, "store", "s", "the store to prepare")
	f.Var(&i.user, "user", "for whom the rights are printed")
	f.BoolVar(&i.print, "print", false, "only print how to make it by hand")
	f.BoolVar(&i.json, "json", false, "print JSON")
	return cmd
}

// An initializer is one dibs store init.
type initializer struct {
	store text
	user  text
	print bool
	json  bool
}

// A setupReport is the JSON of store init.
type setupReport struct {
	Store  placeReport `json:"store"`
	Makes  string      `json:"makes"`
	Made   bool        `json:"made"`
	Script string      `json:"script"`
	Rights string      `json:"rights"`
}

func (i *initializer) run(cmd *cobra.Command) error {
	if i.user.value == "" || printable(i.user.value) != i.user.value || strings.ContainsFunc(i.user.value, unicode.IsSpace) {
		return usagef("--user %s: want the name of a user, in one word", quote(i.user.value))
	}
	p, err := choose(i.store)
	if err != nil {
		return err
	}
	setup, err := driver.PlanSetup(p.url)
	if err != nil {
		return p.cannotOpen(err)
	}
	r := setupReport{Store: placeReport{URL: driver.Redact(p.url), From: p.from}, Makes: setup.Makes, Script: setup.Script}
	if setup.Rights != nil {
		r.Rights = setup.Rights(i.user.value)
	}
	if setup.Make != nil && !i.print {
		ctx, cancel := context.WithTimeout(cmd.Context(), listTime)
		defer cancel()
		if r.Made, err = setup.Make(ctx); err != nil {
			return p.cannotOpen(err)
		}
	}
	if i.json {
		return printJSON(cmd.OutOrStdout(), r)
	}
	for _, line := range i.say(p, r) {
		say(cmd.ErrOrStderr(), "%s", line)
	}
	if i.print && r.Script != "" {
		r.Rights = r.Script + r.Rights
	}
	if r.Rights == "" {
		return nil
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), r.Rights)
	return err
}

// say tells what was done.
func (i *initializer) say(p place, r setupReport) (lines []string) {
	switch {
	case r.Makes == "":
		lines = append(lines, fmt.Sprintf("the store %s needs nothing to be made", p))
	case i.print:
		return nil // what is printed is to be run
	case r.Made:
		lines = append(lines, fmt.Sprintf("made %s (store: %s)", r.Makes, p))
	default:
		lines = append(lines, fmt.Sprintf("%s is there already (store: %s)", r.Makes, p))
	}
	if r.Rights != "" {
		lines = append(lines, fmt.Sprintf("what the user %s of the store needs, and no more:", quote(i.user.value)))
	}
	return lines
}
