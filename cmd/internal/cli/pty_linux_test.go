package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// editor does what an editor does with a terminal: raw modes, keys one by one, the
// size of the window. q ends it, x ends it as a crash would, z is its own Ctrl-Z.
func editor() int {
	before, err := term.MakeRaw(0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	keys := make(chan byte)
	go func() { // ends with the process
		for b := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(b); n == 1 {
				keys <- b[0]
			} else if err != nil {
				return
			}
		}
	}()
	fmt.Print("editor ready\r\n")
	for {
		select {
		case sig := <-signals:
			w, h, err := term.GetSize(1)
			fmt.Printf("%v %dx%d %v\r\n", sig, w, h, err)
		case key := <-keys:
			fmt.Printf("key %#x\r\n", key)
			switch key {
			case 'q':
				_ = term.Restore(0, before)
				return 0
			case 'x':
				return 3
			case 'z':
				for len(signals) > 0 { // those of before
					<-signals
				}
				_ = term.Restore(0, before)
				_ = unix.Kill(0, unix.SIGTSTP)
				for sig := range signals { // until it was stopped, and goes on
					if sig == unix.SIGCONT {
						break
					}
				}
				_, _ = term.MakeRaw(0)
				fmt.Print("editor again\r\n")
			}
		}
	}
}

// A console is a pseudo-terminal and what is seen on it.
type console struct {
	t     *testing.T
	pty   *os.File // the person's side
	tty   *os.File // the other side, for a look at its modes
	cmd   *exec.Cmd
	ended chan error

	mu   sync.Mutex // guards seen
	seen bytes.Buffer
}

// sit starts a command at a terminal of its own.
func sit(t *testing.T, cmd *exec.Cmd) *console {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, pty: p, tty: tty, cmd: cmd, ended: make(chan error, 1)}
	if err := pty.Setsize(p, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the terminal
		b := make([]byte, 4096)
		for {
			n, err := p.Read(b)
			c.mu.Lock()
			c.seen.Write(b[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { c.ended <- cmd.Wait() }() // ends with the command
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		_ = p.Close()
		if t.Failed() {
			t.Logf("on the terminal: %q", c.text())
		}
	})
	return c
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.String()
}

// see waits until text is there, and forgets all up to it.
func (c *console) see(text string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%q is seen", text), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := bytes.Index(c.seen.Bytes(), []byte(text))
		if i < 0 {
			return false
		}
		c.seen.Next(i + len(text))
		return true
	})
}

func (c *console) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("still not after %v: %s; on the terminal: %q", patience, what, c.text())
		}
	}
}

// key types.
func (c *console) key(text string) {
	c.t.Helper()
	if _, err := c.pty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// code waits for the end.
func (c *console) code() int {
	c.t.Helper()
	select {
	case err := <-c.ended:
		return exitCode(c.t, err)
	case <-time.After(patience):
		c.t.Fatal("it doesn't end")
		return -1
	}
}

func (c *console) modes() unix.Termios {
	c.t.Helper()
	modes, err := unix.IoctlGetTermios(int(c.tty.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	return *modes
}

func (c *console) foreground() int {
	c.t.Helper()
	group, err := unix.IoctlGetInt(int(c.pty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		c.t.Fatal(err)
	}
	return group
}

// helpers puts the test's helpers beside dibs, and both into the PATH.
func helpers(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, cmd.Dir+"/editor")
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "PATH="+cmd.Dir+":"+os.Getenv("PATH"), "TERM=xterm")
	return cmd
}

// shell sits at an interactive shell with job control.
func shell(t *testing.T) *console {
	t.Helper()
	cmd := helpers(t, command(t))
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-i"}
	cmd.Env = append(cmd.Env, "PS1=ready> ", "ENV=", "HISTFILE=")
	c := sit(t, cmd)
	c.see("ready> ")
	return c
}

func TestAnEditorAtATerminal(t *testing.T) {
	t.Parallel()
	c := sit(t, helpers(t, command(t, "run", "k", "--", "editor")))
	before := c.modes()
	c.see("editor ready")
	for _, key := range []string{"a", "\x03", "\x1a", "\x1c", "\x1b"} {
		c.key(key)
		c.see(fmt.Sprintf("key %#x", key[0]))
	}
	if err := pty.Setsize(c.pty, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	c.see("window changed 100x40 <nil>")
	c.key("q")
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if c.modes() != before {
		t.Error("the modes of the terminal have changed")
	}
}

func TestTheTerminalIsRestoredAfterACrash(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *console){
		"exit": func(c *console) { c.key("x") },
		"kill": func(c *console) { _ = unix.Kill(-c.foreground(), unix.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sit(t, helpers(t, command(t, "run", "k", "--", "editor")))
			before := c.modes()
			c.see("editor ready")
			if c.foreground() == c.cmd.Process.Pid {
				t.Error("the command has not got the terminal")
			}
			end(c)
			if code := c.code(); code == 0 {
				t.Error("exit code 0")
			}
			if c.modes() != before {
				t.Error("the modes of the terminal are not as they were")
			}
		})
	}
}

func TestCtrlCReachesTheCommandAlone(t *testing.T) {
	t.Parallel()
	c := sit(t, helpers(t, command(t, "run", "k", "--", "sh", "-c", `trap 'echo interrupted; trap "exit 9" INT; echo again' INT; echo ready; while :; do sleep 0.05; done`)))
	c.see("ready")
	c.key("\x03")
	c.see("again")
	if text := c.text(); strings.Contains(text, "interrupted") || strings.Contains(text, "dibs:") {
		t.Errorf("more than one interrupt: %q", text)
	}
	c.key("\x03")
	if code := c.code(); code != 9 {
		t.Errorf("exit code %d", code)
	}
}

// Ctrl-Z gives the shell its prompt, and fg goes on where it was.
func TestCtrlZAndFg(t *testing.T) {
	t.Parallel()
	c := shell(t)
	home := c.foreground()
	c.key("dibs run k -- editor; echo code=$?\n")
	c.see("editor ready")
	for range 2 {
		theirs := c.foreground()
		if theirs == home {
			t.Fatal("the command has not got the terminal")
		}
		c.key("z")
		c.await("the shell has the terminal", func() bool { return c.foreground() == home })
		c.see("ready> ")
		if s := stateOf(theirs); s != "T" {
			t.Errorf("the command is in state %s", s)
		}
		c.key("echo pro''mpt\n")
		c.see("prompt")
		c.key("fg\n")
		c.see("editor again")
		c.await("the command has the terminal", func() bool { return c.foreground() == theirs })
		c.key("a")
		c.see("key 0x61")
	}
	c.key("q")
	c.see("ready> ")
	if c.foreground() != home {
		t.Error("the shell has not got its terminal back")
	}
	c.key("exit\n")
	c.code()
}

// Ctrl-Z stops a command that leaves it to the kernel; in the background it goes
// on. The command starts no process: one that is stopped between vfork and exec
// leaves its parent running, in any shell's job.
func TestCtrlZAndBg(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.key("mkfifo go; dibs run k -- sh -c 'echo u\"\"p; read x <go; echo do\"\"ne'\n")
	c.see("up\r\n")
	c.key("\x1a")
	c.see("ready> ")
	c.key("bg\n")
	c.see("ready> ")
	c.key("echo >go; wait; echo code=$?\n")
	c.see("done")
	c.see("code=0")
	c.key("exit\n")
	c.code()
}

// With nobody to continue it, Ctrl-Z stops nothing.
func TestCtrlZWithoutAShell(t *testing.T) {
	t.Parallel()
	c := sit(t, helpers(t, command(t, "run", "k", "--", "editor")))
	c.see("editor ready")
	c.key("z")
	c.see("editor again")
	c.key("q")
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// In a pipeline the others keep the foreground, until the command asks for it.
func TestACommandInAPipelineGetsTheTerminalWhenItAsks(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.key("dibs run k -- sh -c 'echo up; read line </dev/tty; echo got $line' | cat; echo code=$?\n")
	c.see("up\r\n")
	c.key("hello\n")
	c.see("got hello")
	c.see("code=0")
	c.key("exit\n")
	c.code()
}

// In a script Ctrl-C ends the command and the script. (A shell that hears of it
// while it starts a process looks again when that has ended.)
func TestCtrlCInAScript(t *testing.T) {
	t.Parallel()
	cmd := helpers(t, command(t))
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "dibs run k -- sh -c 'echo ready; while :; do sleep 0.05; done'; echo not rea''ched"}
	c := sit(t, cmd)
	c.see("ready")
	c.key("\x03")
	c.code()
	if strings.Contains(c.text(), "not reached") {
		t.Error("the script went on")
	}
}

// A wait at a terminal is one line, which is gone when it is over.
func TestAWaitAtATerminalIsOneLine(t *testing.T) {
	t.Parallel()
	holder := command(t, "run", "k", "--", "sh", "-c", "echo up >up; until [ -e go ]; do sleep 0.05; done")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	waiter := helpers(t, command(t, "run", "--wait", "k", "--", "echo", "my turn"))
	waiter.Dir = holder.Dir
	waiter.Env = append(waiter.Env, "DIBS_STORE_URL=sqlite://"+holder.Dir+"/locks.db")
	c := &console{t: t}
	c.await("the holder runs", func() bool { _, err := os.Stat(holder.Dir + "/up"); return err == nil })
	c = sit(t, waiter)
	c.see("dibs: waiting")
	c.see(`, 1 in line: "k" is held by `)
	c.see("\r\x1b[Kdibs: waiting for ")
	if err := os.WriteFile(holder.Dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.see("\r\x1b[Kmy turn\r\n")
	if code := c.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(c.text(), "\n") {
		t.Errorf("more: %q", c.text())
	}
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
}
