package servers

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the kernel's own range (32768 and up), so that an
// outgoing connection of somebody else never sits on the port of a server that
// is down for a moment and about to come back.
const (
	lowestPort  = 10000
	highestPort = 32000
)

// ports are the ports in use by this test process: a server that is down keeps
// its port until it is given up for good.
var ports = struct {
	mu    sync.Mutex // guards taken
	taken map[int]bool
}{taken: map[int]bool{}}

// takePort reserves a port that nobody listens on. Another process may still
// bind it first: whoever starts a server on it asks again if that happens.
func takePort() (int, error) {
	for range 200 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if reservePort(port) {
			if bindable(port) {
				return port, nil
			}
			freePort(port)
		}
	}
	return 0, errors.New("servers: no free port found on the loopback interface")
}

// reservePort reports whether the port was free in this process, and now is not.
func reservePort(port int) bool {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.taken[port] {
		return false
	}
	ports.taken[port] = true
	return true
}

// freePort gives a port back.
func freePort(port int) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	delete(ports.taken, port)
}

func bindable(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
