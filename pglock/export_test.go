package pglock

import "context"

// Tidy forgets all that is idle, now.
func Tidy(ctx context.Context, t *Table) error { return t.tidy(ctx, 0) }
