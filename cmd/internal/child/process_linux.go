package child

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Limits tells what cannot be promised on this system; "" if all can.
func Limits() string {
	return "the command dies with a dibs that is killed by KILL, but what the command has started then runs on without the lock; and a dibs that is frozen for longer than --ttl stops the command only when it goes on"
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has ended, and tells whether it was left to
// be reaped.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// groupLives tells whether the group has a member that is not a zombie. Zombies
// don't count: the command itself is one until it is reaped, and so are its
// orphans where process 1 reaps nobody.
func (p *Process) groupLives() bool {
	// A scan isn't atomic: it can miss a process whose parent it saw too late. A
	// second one would have to miss it too.
	for range 2 {
		lives, err := scan(p.Pid())
		if err != nil {
			// Without /proc only the kernel can tell, and it counts our zombie.
			p.reap()
			return unix.Kill(-p.Pid(), 0) == nil
		}
		if lives {
			return true
		}
	}
	return false
}

// scan looks for a live member of the group in /proc.
func scan(group int) (bool, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	self := false
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		self = true
		if memberOf(stat, group) {
			return true, nil
		}
	}
	if !self {
		return false, errors.New("/proc shows no process")
	}
	return false, nil
}

// memberOf tells whether the line of /proc/N/stat is that of a live process of
// the group: "pid (name) state ppid pgrp ...", where the name may hold anything.
func memberOf(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return false
	}
	pgrp, err := strconv.Atoi(string(fields[2]))
	state := fields[0][0]
	return err == nil && pgrp == group && state != 'Z' && state != 'X'
}
