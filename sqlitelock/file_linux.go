package sqlitelock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// local are the file systems whose locks and shared memory are known to work
// among all processes of one machine, and only of one.
var local = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext", // 2, 3 and 4
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.BCACHEFS_SUPER_MAGIC:  "bcachefs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
	unix.REISERFS_SUPER_MAGIC:  "reiserfs",
	unix.NILFS_SUPER_MAGIC:     "nilfs",
	0x2fc12fc1:                 "zfs",
	0x3153464a:                 "jfs",
}

// others are named for the message only.
var others = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.SMB2_SUPER_MAGIC:  "smb2",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "fuse",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x01161970:             "gfs2",
	0x0bd00bd0:             "lustre",
	0x47504653:             "gpfs",
}

// fileSystem names dir's file system, and tells whether it is known to be local.
func fileSystem(dir string) (name string, isLocal bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err.Error(), false
	}
	magic := int64(uint32(st.Type)) // signed on some platforms
	if name, ok := local[magic]; ok {
		return name, true
	}
	if name, ok := others[magic]; ok {
		return name, false
	}
	return fmt.Sprintf("type %#x", magic), false
}

// freeSpace is how many bytes a user can still write in dir; -1: not known.
func freeSpace(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize)
}
