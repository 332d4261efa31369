package pglock

import (
	"context"
	"time"
)

// Tidy forgets all that is idle, now.
func Tidy(ctx context.Context, t *Table) error { return t.tidy(ctx, 0) }

// SetPatience sets how long a asks others who do not answer.
func (a *Advisory) SetPatience(d time.Duration) { a.patience = d }

// Ask makes a session as those that hold a's locks are made, and asks it for one value.
func (a *Advisory) Ask(ctx context.Context, query string) (v int64, err error) {
	s, err := a.dial.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer s.bye()
	err = s.QueryRow(ctx, query).Scan(&v)
	return v, err
}
