package terminal

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// parentOf reads the parent's id from "pid (name) state ppid ...".
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, errors.New("short stat")
	}
	return strconv.Atoi(string(fields[1]))
}
