package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// An api is a runner that is asked over HTTP.
type api struct{ server text }

// newAPI adds the flag that says where it is.
func newAPI(cmd *cobra.Command) *api {
	a := &api{server: text{kind: "URL"}}
	cmd.Flags().Var(&a.server, "server", "where dibs serve is; default DIBS_SERVER, or http://127.0.0.1:8080. DIBS_TOKEN is the token")
	return a
}

// An apiAnswer is what it said.
type apiAnswer struct {
	status int
	header http.Header
	body   []byte
}

// do makes a request. An answer that is no success is a failure that says the
// server's own words.
func (a *api) do(ctx context.Context, method, path string, header http.Header, body any) (apiAnswer, error) {
	resp, err := a.send(ctx, method, path, header, body)
	if err != nil {
		return apiAnswer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return apiAnswer{}, failf(exitStoreDown, "the server's answer broke off: %v", err)
	}
	return apiAnswer{resp.StatusCode, resp.Header, data}, nil
}

// send makes a request, and returns an answer that is a success.
func (a *api) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	base := strings.TrimSuffix(cmp.Or(a.server.value, os.Getenv("DIBS_SERVER"), "http://127.0.0.1:8080"), "/")
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, usagef("the server %s: want a URL such as http://127.0.0.1:8080", quote(base))
	}
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, content)
	if err != nil {
		return nil, usagef("%v", err)
	}
	if header != nil {
		req.Header = header
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := os.Getenv("DIBS_TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, failf(exitStoreDown, "can't reach the server: %v\nis dibs serve running? say where with --server or DIBS_SERVER", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problemOf(resp)
}

// problemOf is the failure that an answer is.
func problemOf(resp *http.Response) error {
	var p struct{ Title, Detail string }
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if json.Unmarshal(data, &p) != nil || p.Detail == "" {
		p.Detail = resp.Status
	}
	code := exitStoreDown
	switch resp.StatusCode {
	case http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests:
		code = exitHeld
	case http.StatusUnauthorized, http.StatusForbidden:
		code = exitRefused
	case http.StatusPreconditionFailed:
		code = exitChanged
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		code = exitUsage
	}
	text := p.Detail
	if after := resp.Header.Get("Retry-After"); after != "" {
		text += "\ntry again in " + after + "s"
	}
	return failf(code, "%s", text)
}

// jobPath is the path of a job's id, whose slashes are its own.
func jobPath(id string) string {
	return (&url.URL{Path: "/run/" + id}).EscapedPath()
}

// printRaw prints JSON as the server sent it.
func printRaw(w io.Writer, data []byte) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(data))
	return err
}
