package main

import "strings"

// splice is an older report in which the stores that were measured again, all or
// some of their contests, have their new sections. The older report's begin is kept,
// and so are the sections of stores that were not measured.
func splice(older, newer string) string {
	older, _, _ = strings.Cut(older, libraryLine)
	newer, libraries, _ := strings.Cut(newer, libraryLine)
	head, stores := sections(older, "\n## ")
	_, again := sections(newer, "\n## ")
	for _, s := range again {
		stores = replace(stores, s, func(old, new string) string {
			about, contests := sections(new, "\n### ")
			_, kept := sections(old, "\n### ")
			for _, c := range contests {
				kept = replace(kept, c, func(_, new string) string { return new })
			}
			return about + strings.Join(kept, "")
		})
	}
	return head + strings.Join(stores, "") + libraryLine + libraries
}

// libraryLine begins a report's last line.
const libraryLine = "\nLibraries: "

// sections splits a report before each mark.
func sections(text, mark string) (head string, all []string) {
	parts := strings.Split(text, mark)
	for _, p := range parts[1:] {
		all = append(all, mark+p)
	}
	return parts[0], all
}

// replace puts s in the place of the section with the same title, or at the end.
func replace(all []string, s string, with func(old, new string) string) []string {
	title := func(s string) string { line, _, _ := strings.Cut(strings.TrimLeft(s, "\n"), "\n"); return line }
	for i, old := range all {
		if title(old) == title(s) {
			all[i] = with(old, s)
			return all
		}
	}
	return append(all, s)
}
