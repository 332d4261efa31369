package servers

import "testing"

// RedisOnPorts is Redis with the ports that it tries, in order.
func RedisOnPorts(t testing.TB, ports ...int) *RedisServer {
	t.Helper()
	next := func() (int, error) {
		port := ports[0]
		ports = ports[1:]
		return port, nil
	}
	return own(t, func(dir string) (*RedisServer, error) { return launchRedis(dir, next, nil) })
}

// TakePort reserves a free port.
func TakePort() (int, error) { return takePort() }
