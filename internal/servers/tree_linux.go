package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// backends are the processes that the server has started and that run now.
func (s *Server) backends() []int {
	var pids []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state parent ...", where the name may hold anything.
		rest := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(rest) < 2 || rest[1] != strconv.Itoa(s.PID()) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func signalAll(pids []int, sig syscall.Signal) error {
	var errs []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("servers: signal process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

// pauseAll freezes grandchildren, for which there is no waitid: their state tells.
func pauseAll(pids []int) error {
	err := signalAll(pids, syscall.SIGSTOP)
	for _, pid := range pids {
		await(func() bool { return !Alive(pid) || stopped(pid) })
	}
	return err
}

func resumeAll(pids []int) error { return signalAll(pids, syscall.SIGCONT) }

func awaitGone(pids []int) error {
	for _, pid := range pids {
		if !await(func() bool { return !Alive(pid) }) {
			return fmt.Errorf("servers: process %d survives KILL", pid)
		}
	}
	return nil
}

func stopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

// await reports whether something came true that gives no signal.
func await(done func() bool) bool {
	for deadline := time.Now().Add(stopPatience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
