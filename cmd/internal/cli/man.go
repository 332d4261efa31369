package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	var dir text
	cmd := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print the manual pages",
		Long: `Print the manual page of dibs, or of one of its commands; with --dir write all of
them as files: dibs.1, dibs-run.1, and so on.`,
		Example: `  dibs man run | man -l -
  dibs man --dir /usr/local/share/man/man1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir.given {
				if len(args) > 0 {
					return usagef("--dir takes all pages; unexpected %s", quote(args[0]))
				}
				return manTree(cmd.Root(), dir.value)
			}
			page, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %s; see dibs --help", quote(strings.Join(args, " ")))
			}
			return manPage(page, cmd.OutOrStdout())
		},
	}
	dir.kind = "DIR"
	cmd.Flags().Var(&dir, "dir", "write all pages into this directory")
	return cmd
}

// manTree writes the pages of cmd and all below it. The directory must be there.
func manTree(cmd *cobra.Command, dir string) error {
	path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	f, err := os.Create(path)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "; make the directory first"
		}
		return failf(exitNoStateDir, "can't write the page: %v%s", err, hint)
	}
	if err := errors.Join(manPage(cmd, f), f.Close()); err != nil {
		return failf(exitNoStateDir, "can't write %s: %v", path, err)
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		if err := manTree(c, dir); err != nil {
			return err
		}
	}
	return nil
}

// manPage writes a page. Its date is the source's, so that a build can be repeated.
func manPage(cmd *cobra.Command, w io.Writer) error {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	header := &doc.GenManHeader{Section: "1", Source: "dibs", Manual: "dibs"}
	if at := sourceTime(); !at.IsZero() {
		header.Date = &at
	}
	return doc.GenMan(cmd, header, w)
}

// sourceTime is when the source was committed; zero: not known.
func sourceTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			at, _ := time.Parse(time.RFC3339, s.Value)
			return at
		}
	}
	return time.Time{}
}

// special are the characters that would not be themselves in Markdown.
var special = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "`", "\\`")

// markdown writes a help text, whose indented lines stand as they are, for the
// generator.
func markdown(help string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(help) {
		was := indented
		indented = strings.HasPrefix(line, "  ")
		switch {
		case indented && !was:
			b.WriteString("\n    " + line)
		case indented:
			b.WriteString("    " + line)
		default:
			b.WriteString(special.Replace(line))
		}
	}
	return b.String()
}
