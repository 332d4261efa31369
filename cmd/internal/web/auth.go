package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// A Role is what somebody may do; each includes those before it.
type Role int

// The roles.
const (
	MayNothing Role = iota
	MayRead         // look
	MayRun          // start and cancel runs
	MayAll          // pause jobs and take locks away
)

var roles = map[string]Role{"none": MayNothing, "read": MayRead, "run": MayRun, "admin": MayAll}

// String is how it is written in the tokens' file.
func (r Role) String() string {
	for name, role := range roles {
		if role == r {
			return name
		}
	}
	return "unknown"
}

// A user is whoever has a token.
type user struct {
	name string
	role Role
	hash [sha256.Size]byte
}

// Users are all who have one, and what may be done without.
type Users struct {
	list      []user
	anonymous Role
}

// Open is everybody: for a server that this host alone can reach.
func Open() *Users { return &Users{anonymous: MayAll} }

// minToken is the shortest token: a shorter one can be guessed.
const minToken = 16

// LoadUsers reads the tokens' file: a line NAME ROLE TOKEN for each user; # begins
// a comment.
func LoadUsers(path, anonymous string) (*Users, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := &Users{anonymous: roles[anonymous]}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		// What is wrong with a line is said without it: it has a secret in it.
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s:%d: want NAME ROLE TOKEN", path, n)
		}
		role := roles[fields[1]]
		if role == MayNothing {
			return nil, fmt.Errorf("%s:%d: the role must be read, run or admin", path, n)
		}
		if len(fields[2]) < minToken {
			return nil, fmt.Errorf("%s:%d: the token is shorter than %d characters; make one with: openssl rand -hex 32", path, n, minToken)
		}
		if other, ok := u.find(fields[2]); ok { // whose role would it have?
			return nil, fmt.Errorf("%s:%d: %s has the same token as %s", path, n, fields[0], other.name)
		}
		u.list = append(u.list, user{fields[0], role, sha256.Sum256([]byte(fields[2]))})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(u.list) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it", path)
	}
	return u, nil
}

// find returns who has token. It takes as long for any token, and looks at all.
func (u *Users) find(token string) (found user, ok bool) {
	hash := sha256.Sum256([]byte(token))
	for _, one := range u.list {
		if subtle.ConstantTimeCompare(hash[:], one.hash[:]) == 1 {
			found, ok = one, true
		}
	}
	return found, ok
}

type callerKey struct{}

// callerOf returns who asks.
func callerOf(ctx context.Context) user {
	c, _ := ctx.Value(callerKey{}).(user)
	return c
}

// authenticated finds out who asks, and whether they may at least look.
func authenticated(users func() *Users, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := users()
		who := user{name: "anonymous", role: u.anonymous}
		if text := r.Header.Get("Authorization"); text != "" && len(u.list) > 0 {
			scheme, token, _ := strings.Cut(text, " ")
			found, ok := u.find(strings.TrimSpace(token))
			if !strings.EqualFold(scheme, "Bearer") || !ok {
				unauthorized("the token is not known").write(w)
				return
			}
			who = found
		}
		if p := r.URL.Path; p != "/healthz" && p != "/readyz" {
			if err := who.may(need(r)); err != nil {
				err.write(w)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// need is the role that a request takes.
func need(r *http.Request) Role {
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return MayRead // a GET that starts a run asks for more
	case strings.HasSuffix(r.URL.Path, "/pause"), strings.HasSuffix(r.URL.Path, "/resume"), strings.HasPrefix(r.URL.Path, "/api/v1/locks/"):
		if !strings.HasPrefix(r.URL.Path, "/run/") {
			return MayAll
		}
	}
	return MayRun
}

// may tells whether who asks has a role.
func (u user) may(role Role) *Problem {
	switch {
	case u.role >= role:
		return nil
	case u.name == "anonymous":
		return unauthorized("a token is needed: Authorization: Bearer TOKEN")
	}
	return problem(http.StatusForbidden, "", "%s has the role %v; this takes %v", u.name, u.role, role)
}

func unauthorized(text string) *Problem {
	p := problem(http.StatusUnauthorized, "", "%s", text)
	p.header.Set("WWW-Authenticate", `Bearer realm="dibs"`)
	return p
}
