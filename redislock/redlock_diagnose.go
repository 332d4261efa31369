package redislock

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/redislock/internal/quorum"
)

var (
	_ driver.Diagnoser = (*Redlock)(nil)
	_ driver.Diagnoser = (*Cluster)(nil)
)

// Diagnose looks at every node: whether it votes, and what would make it forget.
func (s *Redlock) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	var found []driver.Finding
	votes, fragile := 0, 0
	for _, n := range s.nodes {
		level, text, hint := driver.Fine, "votes, also after a restart", ""
		c, err := n.conn(ctx)
		var i inspected
		if err == nil {
			i, err = inspect(ctx, c, n.key)
		}
		switch {
		case err != nil:
			level, text, hint = driver.Warn, err.Error(), "dibs redlock status tells more"
		case !i.durable:
			votes++
			fragile++
			level, text = driver.Info, "votes, until it is restarted: then it has to be readmitted"
			hint = "appendonly yes and appendfsync always, if it is to vote after a restart; else dibs redlock readmit"
		default:
			votes++
		}
		found = append(found, driver.Finding{Check: "node", Level: level, Text: n.addr + ": " + text, Hint: hint})
		if err == nil {
			found = append(found, kept(ctx, n.addr, n.link)...)
		}
	}
	q := quorum.Majority(len(s.nodes))
	f := driver.Finding{Check: "quorum", Level: driver.Fine, Text: fmt.Sprintf("%d of %d nodes vote; %d have to", votes, len(s.nodes), q)}
	switch {
	case votes < q:
		f.Level, f.Hint = driver.Warn, "nobody gets a lock before more do: dibs redlock status"
	case votes == q:
		f.Level, f.Hint = driver.Warn, "the loss of one more, and nobody gets a lock: dibs redlock status"
	}
	return append([]driver.Finding{f}, found...), nil
}

// Diagnose looks at every master: what it would do to locks if its memory ran
// full, if it restarted, or if its replica took its place.
func (c *Cluster) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := c.base.enter(ctx); err != nil {
		return nil, err
	}
	masters := c.nodes.masters()
	found := []driver.Finding{{Check: "cluster", Level: driver.Fine, Text: fmt.Sprintf("%d masters", len(masters))}}
	for _, m := range masters {
		name := "a master"
		if conn, err := m.get(ctx); err == nil && conn.addr != "" {
			name = conn.addr
		}
		x, err := examine(ctx, m)
		if err != nil {
			return found, c.base.failed(ctx, "", err)
		}
		x.server()
		x.memory()
		x.eviction()
		x.persistence(x.setting(ctx, m))
		x.replicas()
		for _, f := range x.found {
			f.Text = name + ": " + f.Text
			found = append(found, f)
		}
	}
	if c.base.keys.plain {
		return found, nil // which signals nothing
	}
	x := &exam{}
	err := x.signals(ctx, c.named("nobody"))
	return append(found, x.found...), err
}

// kept is what a node of a quorum does with its memory.
func kept(ctx context.Context, addr string, w wire) (found []driver.Finding) {
	x, err := examine(ctx, w)
	if err != nil {
		return nil // it answered a moment ago
	}
	x.memory()
	x.eviction()
	for _, f := range x.found {
		if f.Level != driver.Fine {
			f.Text = addr + ": " + f.Text
			found = append(found, f)
		}
	}
	return found
}

// examine begins the exam of a server.
func examine(ctx context.Context, w wire) (*exam, error) {
	info, err := w.do(ctx, func(b rueidis.Builder) rueidis.Completed { return b.Info().Build() }).ToString()
	if err != nil {
		return nil, err
	}
	x := &exam{}
	x.read(info)
	return x, nil
}

// setting looks up a server's configuration; "": the user may not see it.
func (x *exam) setting(ctx context.Context, w wire) func(name string) string {
	return func(name string) string {
		all, err := w.do(ctx, func(b rueidis.Builder) rueidis.Completed { return b.ConfigGet().Parameter(name).Build() }).AsStrMap()
		if err != nil {
			return ""
		}
		return all[name]
	}
}
