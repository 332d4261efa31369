package cli

import "testing"

func TestMountType(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /srv rw - xfs /dev/sdb rw
24 22 0:22 / /srv/my\040files rw shared:2 master:1 - nfs4 host:/x rw
25 22 0:23 / /srv rw - tmpfs tmpfs rw
short line
`
	for path, want := range map[string]string{
		"/":                  "ext4",
		"/srvother/x":        "ext4",
		"/srv":               "tmpfs",
		"/srv/x/locks.db":    "tmpfs",
		"/srv/my files/l.db": "nfs4",
	} {
		if got := mountType(mounts, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
