package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// What is said twice is refused, in header, query and body: whoever is between the
// client and here might go by the one, and this server by the other.

// singular are the header fields that say one thing.
var singular = []string{"Authorization", "Content-Type", "Dibs-Trigger", "Idempotency-Key", "If-Match", "Last-Event-Id"}

// unambiguous refuses requests whose header or query says something twice.
func unambiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := ambiguous(r); p != nil {
			p.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ambiguous(r *http.Request) *Problem {
	for _, name := range singular {
		if n := len(r.Header[name]); n > 1 {
			return problem(http.StatusBadRequest, "ambiguous", "%s is there %d times; send it once", name, n)
		}
	}
	if key, ok := r.Header["Idempotency-Key"]; ok && key[0] == "" {
		return problem(http.StatusBadRequest, "empty-key", "Idempotency-Key is empty, and would not make repeating the request safe; send a new random value for each thing to do, or leave it out")
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(http.StatusBadRequest, "", "the query can't be read: %v", err)
	}
	for name, values := range query {
		if len(values) > 1 {
			return problem(http.StatusBadRequest, "ambiguous", "%.50q is in the query %d times; a list is written with commas", name, len(values))
		}
	}
	return nil
}

// formats are JSON that says each thing once.
var formats = map[string]huma.Format{
	"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal},
	"json":             {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal},
}

func unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the body is not UTF-8")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return twice(json.NewDecoder(bytes.NewReader(data)))
}

// twice returns an error for a key that is twice in an object of the next value,
// which is known to be JSON.
func twice(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, _ := token.(json.Delim)
	if open == 0 {
		return nil
	}
	seen := make(map[string]bool)
	for d.More() {
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			key, _ := token.(string)
			if seen[key] {
				return fmt.Errorf("the key %.50q is there twice", key)
			}
			seen[key] = true
		}
		if err := twice(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
