package runner_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/config"
)

func revocation(h dibs.Holder) dibs.Revocation {
	return dibs.Revocation{Name: h.Name, Token: h.Token}
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.Background(), d)
}

func tryParse(text string) (*config.Config, error) {
	return config.Parse("test", []byte(text), os.LookupEnv)
}
