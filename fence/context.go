package fence

import "context"

type contextKey struct{}

// NewContext returns a copy of ctx that carries a lease, for a [Transport].
func NewContext(ctx context.Context, lease Fenced) context.Context {
	return context.WithValue(ctx, contextKey{}, lease)
}

// FromContext returns the lease that ctx carries: what [NewContext] put there, or
// in a handler behind a [Gate] what the request offered. A handler passes it on to
// the guard of what it writes to.
func FromContext(ctx context.Context) (lease Fenced, ok bool) {
	lease, ok = ctx.Value(contextKey{}).(Fenced)
	return lease, ok
}
