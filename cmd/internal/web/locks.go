package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

type locksInput struct {
	Page
	Prefix string `query:"prefix" maxLength:"512" doc:"of the keys"`
}

type locksOutput struct {
	Body struct {
		Locks []Lock `json:"locks" doc:"by key"`
		Next  string `json:"next,omitempty" doc:"the cursor of the next page; none: that is all"`
	}
}

// ByKey names what a route is about.
type ByKey struct {
	Key string `path:"key" maxLength:"512"`
}

type lockOutput struct {
	ETag string `header:"ETag" doc:"the token, if one alone holds it"`
	Body Lock
}

type revokeInput struct {
	ByKey
	IfMatch string `header:"If-Match" maxLength:"100" doc:"the holder's token in quotes, so that a successor is never hit"`
	Now     bool   `query:"now" doc:"free the key at once, whatever its holder is doing"`
	Reason  string `query:"reason" maxLength:"500"`
}

type historyInput struct {
	Page
	Prefix string `query:"prefix" maxLength:"512" doc:"of the keys"`
}

type historyOutput struct {
	Body struct {
		Events []Event `json:"events" doc:"the oldest first"`
		Next   string  `json:"next,omitempty" doc:"the cursor of what comes next"`
	}
}

func (s *Server) routeLocks() {
	huma.Register(s.api, op(http.MethodGet, "/api/v1/locks", "list-locks", "Who holds what, and who waits", http.StatusNotImplemented), s.listLocks)
	huma.Register(s.api, op(http.MethodGet, "/api/v1/locks/{key...}", "get-lock", "One lock", http.StatusNotImplemented), s.getLock)
	revoke := op(http.MethodDelete, "/api/v1/locks/{key...}", "revoke-lock", "Take a lock away from its holder", http.StatusPreconditionFailed, http.StatusPreconditionRequired, http.StatusNotImplemented)
	revoke.Description = "The holder is told, and the key stays closed until it lets go or its TTL ends; with now=true it is free at once."
	revoke.DefaultStatus = http.StatusAccepted
	huma.Register(s.api, revoke, s.revoke)
	huma.Register(s.api, op(http.MethodGet, "/api/v1/history", "list-history", "Who held what when", http.StatusNotImplemented), s.history)
}

func (s *Server) listLocks(ctx context.Context, in *locksInput) (*locksOutput, error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	out := &locksOutput{}
	out.Body.Locks = []Lock{}
	for h, err := range s.run.Client().Holders(ctx, in.Prefix) {
		if err != nil {
			return nil, refusal(err)
		}
		if h.Name <= after {
			continue
		}
		n := len(out.Body.Locks)
		if n == 0 || out.Body.Locks[n-1].Key != h.Name {
			if n == in.Limit {
				out.Body.Next = cursor(out.Body.Locks[n-1].Key)
				break
			}
			out.Body.Locks = append(out.Body.Locks, Lock{Key: h.Name, Holders: []Holder{}, Waiters: []Holder{}})
			n++
		}
		out.Body.Locks[n-1].add(h)
	}
	return out, nil
}

func (s *Server) getLock(ctx context.Context, in *ByKey) (*lockOutput, error) {
	ctx, cancel := asking(ctx)
	defer cancel()
	out := &lockOutput{Body: Lock{Key: in.Key, Holders: []Holder{}, Waiters: []Holder{}}}
	var unread error // if the key could be read, it is about another that begins like it
	for h, err := range s.run.Client().Holders(ctx, in.Key) {
		if unread = err; err == nil && h.Name == in.Key {
			out.Body.add(h)
		}
	}
	switch n := len(out.Body.Holders); {
	case n == 0 && len(out.Body.Waiters) == 0 && unread != nil:
		return nil, refusal(unread)
	case n == 0 && len(out.Body.Waiters) == 0:
		return nil, problem(http.StatusNotFound, "not-held", "%q is not held", in.Key)
	case n == 1 && out.Body.Holders[0].Token != "": // a program that is not dibs has none
		out.ETag = `"` + out.Body.Holders[0].Token + `"`
	}
	return out, nil
}

func (s *Server) revoke(ctx context.Context, in *revokeInput) (*struct{ Status int }, error) {
	if in.IfMatch == "" {
		return nil, problem(http.StatusPreconditionRequired, "", `say which holder you mean: If-Match: "TOKEN", as GET shows it`)
	}
	if strings.TrimSpace(in.IfMatch) == "*" {
		return nil, problem(http.StatusPreconditionRequired, "", `If-Match: * means whoever holds it by then, and could hit a successor; say which holder you mean: If-Match: "TOKEN", as GET shows it`)
	}
	token, err := strconv.ParseUint(strings.Trim(in.IfMatch, `"`), 10, 64)
	if err != nil || token == 0 {
		return nil, problem(http.StatusPreconditionFailed, "", `If-Match %.50q is no token: send one, If-Match: "TOKEN", as GET shows it`, in.IfMatch)
	}
	if err := driver.CheckName(in.Key); err != nil {
		return nil, problem(http.StatusUnprocessableEntity, "bad-key", "%v", err)
	}
	who := callerOf(ctx).name
	reason := strings.TrimSpace(who + ": " + in.Reason)
	if len(reason) > driver.MaxNote || !utf8.ValidString(reason) {
		return nil, problem(http.StatusUnprocessableEntity, "bad-reason", "the reason is %d bytes long; want UTF-8 of at most %d with the name before it", len(reason), driver.MaxNote)
	}
	call, cancel := asking(ctx)
	defer cancel()
	err = s.run.Client().Revoke(call, dibs.Revocation{Name: in.Key, Token: token, Now: in.Now, Reason: reason})
	if errors.Is(err, dibs.ErrNotHeld) {
		return nil, problem(http.StatusPreconditionFailed, "stale-token", "%v", err)
	}
	if err != nil {
		return nil, refusal(err)
	}
	s.log.Info("audit", "action", "revoke", "key", in.Key, "token", token, "now", in.Now, "by", who, "reason", in.Reason)
	return &struct{ Status int }{http.StatusAccepted}, nil
}

func (s *Server) history(ctx context.Context, in *historyInput) (*historyOutput, error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	journal, ok := s.store.(driver.Journal)
	if !ok {
		return nil, problem(http.StatusNotImplemented, "unsupported", "%s keeps no journal", s.store.Facts().Driver)
	}
	seq, _ := strconv.ParseUint(after, 10, 64)
	ctx, cancel := asking(ctx)
	defer cancel()
	out := &historyOutput{}
	out.Body.Events = []Event{}
	for e, err := range journal.Events(ctx, in.Prefix, seq) {
		if err != nil {
			return nil, refusal(err)
		}
		out.Body.Events = append(out.Body.Events, eventOf(e))
		seq = e.Seq
		if len(out.Body.Events) == in.Limit {
			break
		}
	}
	if len(out.Body.Events) > 0 {
		out.Body.Next = cursor(strconv.FormatUint(seq, 10))
	}
	return out, nil
}
