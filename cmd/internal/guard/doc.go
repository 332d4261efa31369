// Package guard runs one command so that nothing of it outlives the lock that it
// runs under, whatever becomes of the process that took the lock.
//
// On Linux the command is started by a guardian: this program once more, as a
// process with a group of its own, so that what is typed at the terminal and what
// is sent to the group of dibs misses it. It stays in the session, or the command
// would have no terminal. It is the command's parent and the reaper of what the
// command leaves behind (PR_SET_CHILD_SUBREAPER), so that every descendant can be
// found below it, also one that left its group or its session. dibs is such a
// reaper too, one level up.
//
// The two talk over a socket that nobody else has. dibs tells each new deadline;
// the guardian tells how the command does.
//
//	what happens            what follows
//	dibs is killed          the guardian reads the end of the socket without a
//	                        farewell: TERM to everything below it, KILL a quarter
//	                        of a second later, or at the deadline if that is earlier
//	dibs is stopped         the deadline passes: TERM and KILL, both before another
//	                        can hold the lock
//	the guardian is killed  the command dies with it (PDEATHSIG), and dibs inherits
//	                        the rest: it kills it at once
//	the guardian is stopped dibs stops the command by itself, and wakes the
//	                        guardian to hear of the end
//	both are killed at once the command dies by PDEATHSIG; what it had started runs
//	                        on, unless a container, a PID namespace or a control
//	                        group is killed with them
//
// The guardian keeps the life file of a store open that has one (a file, or the
// connection that is the holder's life to its server): the lock then
// frees when the last of dibs and the guardian has gone, and thus when nothing of
// the command is left, and at once.
//
// # What it reaches
//
// The group of the command is what a normal end waits for. When the command is
// stopped for a lost lock or a timeout, it is all descendants (see Whole). Who
// may not be signalled, such as a program that became another user, is not
// reached; nor is a descendant if /proc doesn't show this PID namespace: then the
// group alone is.
//
// On other systems there is no guardian: see package child.
package guard
