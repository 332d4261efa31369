package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable makes a text from elsewhere safe for a terminal and for one line:
// control characters and invalid bytes are escaped.
func printable(s string) string {
	clean := func(r rune) bool {
		return r != utf8.RuneError && !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r)
	}
	ok := true
	for _, r := range s {
		ok = ok && clean(r)
	}
	if ok {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if clean(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(s[i:i+n]), `"`))
		}
		i += n
	}
	return b.String()
}

// quote puts a key in quotes, for messages.
func quote(key string) string { return strconv.Quote(key) }

// shellWord quotes s for a shell if it has to be.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+=./:,@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// trim cuts s to at most n bytes, at a character, and shows that it did.
func trim(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	n = max(n-len(mark), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// short writes a duration without what nobody needs: 1h30m, 3m12s, 30s, 1.5s.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	if days := d / (24 * time.Hour); days >= 3 {
		return fmt.Sprintf("%dd%dh", days, (d%(24*time.Hour))/time.Hour)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// since writes the moment d ago, for people: today by the time alone.
func since(now time.Time, d time.Duration) string {
	at := now.Add(-d)
	layout := "15:04:05"
	if at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		layout = "2006-01-02 15:04:05"
	}
	return fmt.Sprintf("since %s (%s)", at.Format(layout), short(d))
}

// wrap breaks a text into lines of at most width bytes.
func wrap(s string, width int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(s) {
		switch {
		case n == 0:
		case n+1+len(word) > width:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}
