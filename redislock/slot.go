package redislock

import (
	"strconv"
	"strings"
	"sync"
)

// slots is how many a cluster has.
const slots = 16384

// slot is the hash slot of a key: that of its tag, if it has one, or of the whole
// key, as Redis Cluster's specification says.
func slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is CRC-16/XMODEM.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// tag is a hash tag whose slot is n.
func tag(n int) string { return tags()[n] }

var tags = sync.OnceValue(func() []string {
	all := make([]string, slots)
	for i, missing := 0, slots; missing > 0; i++ {
		t := strconv.FormatInt(int64(i), 36)
		if n := slot(t); all[n] == "" {
			all[n] = t
			missing--
		}
	}
	return all
})
