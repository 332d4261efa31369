package sqlitelock

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// tmpPrefix begins the names of life files that are not locked yet.
const tmpPrefix = "new-"

// errNoDir: something else is where the directory of the life files should be.
var errNoDir = errors.New("not a directory")

// A life is this client's life file, and its view on those of others.
//
// The file is named for a random number and locked with flock(2) for as long as
// anybody has it open: the kernel lets go of the lock with the last holder, however
// that dies. A claim's row has the number and which inode the file is. A client
// that finds a claim in its way tries to lock the same file: success proves that
// its owner is gone.
//
// What makes the proof sound: a file gets its name only after it was locked
// (create), so under such a name an unlocked file is a dead one's. An inode that is
// open is not given to another file, so a file that was replaced while its owner
// lives is another inode, and proves nothing. A file that is missing proves
// nothing. A closed client removes its file before it lets go of the lock.
//
// Who removes the files of the dead (see sweep) holds the lock meanwhile, and only
// when no row names the file any more. A file that has no name yet may be taken
// away from a client that is just starting: it notices when it locks or renames
// the file, and makes another.
type life struct {
	dir  string
	bell *bell // nil: wake by touching the file

	mu     sync.Mutex // guards the fields below, also while the file is created: nobody else needs them then
	f      *os.File
	client int64
	proof  int64
	shut   bool
}

// owner returns the numbers of this client's file; zeros: it has none yet.
func (l *life) owner() (client, proof int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client, l.proof
}

// tell wakes client's lookout.
func (l *life) tell(client int64) {
	if l.bell != nil {
		l.bell.ring(client)
		return
	}
	l.wake(client)
}

// handle is the open file.
func (l *life) handle() *os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f
}

func (l *life) path(client int64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%016x", client))
}

// random returns a positive number.
func random() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1
}
