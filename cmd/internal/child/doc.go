// Package child runs one command in a process group of its own, so that a signal
// reaches what the command starts in turn, and so that one can tell when all of
// it has ended.
//
// # What it reaches
//
// On Linux: every process of the group, and the command itself dies with the
// process that started it (PDEATHSIG, which reaches that one process only). On
// other Unix systems the command outlives a starter that is killed by KILL. On
// Windows only the command itself is ended, and only by force. A descendant that
// left the group, by setsid, is reached nowhere. See Limits.
package child
