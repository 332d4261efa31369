package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/cli"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
)

// The test binary is the command, and its helpers, when it is called by their
// names: what the scripts run are real processes.
func TestMain(m *testing.M) {
	testscript.Main(withServers{m}, map[string]func(){
		"dibs":   func() { os.Exit(cli.Main(os.Args[1:])) },
		"revoke": func() { os.Exit(revoke(os.Args[1])) },
		"editor": func() { os.Exit(editor()) },
	})
}

// withServers are tests whose shared servers end with them.
type withServers struct{ m *testing.M }

// Most of what runs here waits: for a TTL, for a terminal, for a server. So there
// is more of it at once than processors, unless -parallel says otherwise.
func (w withServers) Run() int {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// Under nohup the hangup is ignored, and would be by all that the tests start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	return servers.Run(w.m)
}

// revoke takes key away from its holder, as an operator would.
func revoke(key string) int {
	ctx := context.Background()
	c, err := dibs.Open(ctx, os.Getenv("DIBS_STORE_URL"), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close(ctx)
	for h, err := range c.Holders(ctx, key) {
		if err == nil && h.State == driver.Waiting {
			continue
		}
		if err == nil {
			err = c.Revoke(ctx, dibs.Revocation{Name: h.Name, Token: h.Token})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}
