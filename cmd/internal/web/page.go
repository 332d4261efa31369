package web

import (
	"encoding/base64"
	"net/http"
)

// A Page is what a route that lists takes: where to go on, and how much to give.
type Page struct {
	Cursor string `query:"cursor" maxLength:"1000" doc:"the next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// after returns what the cursor says was shown last; "" at the beginning.
func (p Page) after() (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return "", problem(http.StatusBadRequest, "bad-cursor", "the cursor is none that was given out")
	}
	return string(text), nil
}

// cursor says what was shown last.
func cursor(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }
