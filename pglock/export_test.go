package pglock

import "time"

import "context"

// Tidy forgets all that is idle, now.
func Tidy(ctx context.Context, t *Table) error { return t.tidy(ctx, 0) }

// SetPatience sets how long a asks others who do not answer.
func (a *Advisory) SetPatience(d time.Duration) { a.patience = d }
