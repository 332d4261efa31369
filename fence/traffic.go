package fence

import (
	"context"
	"sync"
)

// traffic is what is under way through a Gate, by name.
type traffic struct {
	mu    sync.Mutex // guards names
	names map[string]map[*visit]struct{}
}

// A visit is one request under way, from before it is admitted.
type visit struct {
	name   string
	token  uint64
	ctx    context.Context         // ends with the request, or when a newer token comes
	cancel context.CancelCauseFunc //
	gone   chan struct{}           // closed when it has ended
}

// enter notes a request and returns the older ones. It refuses one that is older
// than any that is under way. From now on none that is older is let in; so those
// that were returned are all there will be.
func (t *traffic) enter(ctx context.Context, name string, token uint64) (v *visit, older []*visit, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other := range t.names[name] {
		if err := judge(name, token, other.token); err != nil {
			return nil, nil, err
		}
		if other.token < token {
			older = append(older, other)
		}
	}
	v = &visit{name: name, token: token, gone: make(chan struct{})}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	if t.names == nil {
		t.names = make(map[string]map[*visit]struct{})
	}
	if t.names[name] == nil {
		t.names[name] = make(map[*visit]struct{})
	}
	t.names[name][v] = struct{}{}
	return v, older, nil
}

// raise tells all that are older than newest to end.
func (t *traffic) raise(name string, newest uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for v := range t.names[name] {
		if v.token < newest {
			v.cancel(&StaleError{Name: name, Offered: v.token, Newest: newest, Interrupted: true})
		}
	}
}

func (t *traffic) leave(v *visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.names[v.name], v)
	if len(t.names[v.name]) == 0 {
		delete(t.names, v.name)
	}
	v.cancel(nil)
	close(v.gone)
}
