package guard

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A proc is a process as /proc shows it.
type proc struct {
	pid, ppid, pgrp int
	state           byte
}

// live tells it from one that has ended and that nobody has collected.
func (p proc) live() bool { return p.state != 'Z' && p.state != 'X' }

// guards tells whether it is a guardian.
func (p proc) guards() bool {
	if p.pid != p.pgrp {
		return false
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
	return err == nil && bytes.HasPrefix(line, []byte(name+"\x00"))
}

var errNoProc = errors.New("/proc doesn't show this PID namespace")

// processes reads all processes. It isn't atomic: it can miss one whose parent
// ended meanwhile, or one that has just been started.
func processes() ([]proc, error) {
	if !procIsOurs() {
		return nil, errNoProc
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []proc
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		if p, ok := parseStat(stat); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// procIsOurs tells whether the numbers in /proc are those of this process's PID
// namespace: with any other, signals would hit strangers.
func procIsOurs() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	// One number for each namespace from that of /proc down to ours.
	_, rest, found := bytes.Cut(status, []byte("\nNSpid:"))
	if !found {
		link, err := os.Readlink("/proc/self")
		return err == nil && link == strconv.Itoa(os.Getpid())
	}
	ids, _, _ := bytes.Cut(rest, []byte("\n"))
	fields := bytes.Fields(ids)
	return len(fields) == 1 && string(fields[0]) == strconv.Itoa(os.Getpid())
}

// parseStat reads "pid (name) state ppid pgrp ...", where the name may hold
// anything.
func parseStat(stat []byte) (p proc, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 2 || end < open {
		return p, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 3 {
		return p, false
	}
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(string(stat[:open-1]))
	p.ppid, errs[1] = strconv.Atoi(string(fields[1]))
	p.pgrp, errs[2] = strconv.Atoi(string(fields[2]))
	p.state = fields[0][0]
	return p, errors.Join(errs[:]...) == nil
}

// below returns the descendants of root, without those that cut stops at, and
// what is below them.
func below(all []proc, root int, cut func(proc) bool) []proc {
	children := make(map[int][]proc)
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []proc
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			if cut == nil || !cut(p) {
				found = append(found, p)
				next = append(next, p.pid)
			}
		}
	}
	return found
}

// killBelow sends KILL to every descendant of root that cut doesn't stop at, and
// tells how many were there. Call it until there are none: it can miss some, which
// then are orphans of root.
func killBelow(root, except int, cut func(proc) bool) (int, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range below(all, root, cut) {
		if p.live() && p.pid != except && p.pid != os.Getpid() {
			n++
			_ = unix.Kill(p.pid, unix.SIGKILL) // gone meanwhile, or not ours to kill
		}
	}
	return n, nil
}

// terminate asks the group to end, and with whole all else that is below root.
// What runs under an inner guardian is asked by the inner dibs, which is asked
// here. A stopped process would not hear of it, so it is continued too.
func terminate(group, root int, whole bool) error {
	var others []proc
	if whole {
		if all, err := processes(); err == nil {
			for _, p := range below(all, root, proc.guards) {
				if p.pgrp != group && p.live() {
					others = append(others, p)
				}
			}
		}
	}
	var first error
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		if err := killGroup(group, sig); first == nil {
			first = err
		}
		for _, p := range others {
			_ = unix.Kill(p.pid, sig) // gone meanwhile, or not ours
		}
	}
	return first
}

// killGroup sends sig to a group. One that has ended is no error.
func killGroup(group int, sig unix.Signal) error {
	if err := unix.Kill(-group, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
