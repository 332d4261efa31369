package pglock_test

import (
	"os"
	process "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// nodeTry is what programs on Node do with npm's pg: it prints what they get.
const nodeTry = `
const { Client } = require('pg')
;(async () => {
  const c = new Client({ connectionString: process.argv[1] })
  await c.connect()
  await c.query('BEGIN')
  const r = await c.query('SELECT pg_try_advisory_xact_lock(hashtext($1)) AS got', ['invoice:process'])
  console.log(r.rows[0].got)
  if (process.argv[2] === 'hold') {
    await new Promise((go) => process.stdin.once('data', go))
  }
  await c.query('COMMIT')
  await c.end()
})()
`

// nodeModules is where scripts/servers.sh puts npm's packages.
const nodeModules = "../bench/interop/testdata/node_modules"

func TestNodeExcludesUsAndWeIt(t *testing.T) {
	path, err := filepath.Abs(nodeModules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "pg")); err != nil {
		t.Fatalf("npm's pg is not installed (%v): run scripts/servers.sh, or npm ci in bench/interop/testdata", err)
	}
	rawURL := newStore(t, servers.SharedPostgres(t))
	s := open(t, advisory(with(t, rawURL, "", "hash", "hashtext")))
	node := func(how string) *process.Cmd {
		cmd := process.CommandContext(t.Context(), "node", "-e", nodeTry, rawURL, how)
		cmd.Env = append(os.Environ(), "NODE_PATH="+path)
		cmd.Stderr = os.Stderr
		return cmd
	}
	c, _ := drivertest.MustAcquire(t, s, mutex("invoice:process"))
	if out, err := node("try").Output(); err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Fatalf("node got %q of what we hold, %v", out, err)
	}
	drivertest.MustRelease(t, s, c)
	cmd := node("hold")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := out.Read(got); err != nil || string(got) != "true" {
		t.Fatalf("node got %q of what is free, %v", got, err)
	}
	refused(t, s, mutex("invoice:process"))
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	drivertest.MustAcquire(t, s, mutex("invoice:process"))
}
