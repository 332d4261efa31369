// Package servers starts real servers for tests: direct children of the test
// process, on free loopback ports, with data in a directory of their own, and
// gone when the test is.
//
//	func TestMain(m *testing.M) { servers.Main(m) }
//
//	r := servers.Redis(t)       // one server of this test's own
//	r := servers.SharedRedis(t) // one server for the whole test binary
//	rs := servers.Redises(t, 5) // five, started side by side
//
// What holds for every kind of server:
//
//   - A constructor returns when the server answers, and it is this child that
//     answers, not a stranger on the same port.
//   - A server ends with the test that started it; a shared one ends in [Main].
//     On Linux it ends even if the test process is killed: the kernel kills the
//     child when the thread that started it dies.
//   - A missing server binary fails the test and names the command that
//     installs it. It never skips: a suite that skips proves nothing.
//   - Signals go to a process that this package started, by its id.
//
// PostgreSQL refuses to run as root: a test that is root runs it as the user
// postgres, whom its package makes.
//
// MariaDB runs as root if the test does.
//
// The files: redis.go is a kind of server (its command line, its probe, its
// options); server.go is what a test may do to a server of any kind; launch.go
// finds a port for it; own.go and shared.go say how long it lives; process.go is
// one run of one child; user_*.go says as whom; tree_*.go knows the processes of a
// server that has several. A new kind of server is one more file like redis.go and
// one more row in binary.go.
package servers
