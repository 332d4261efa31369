//go:build unix

package cli

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner names the user that a file belongs to, or is "".
func owner(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	uid := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}
