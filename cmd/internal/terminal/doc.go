// Package terminal lends the controlling terminal of this process to the group of
// a command, and takes it back, as a shell with job control does.
//
// It does so on Linux. Elsewhere there is no terminal to lend: a command that is
// in a group of its own can write to it, and is stopped when it reads.
package terminal
