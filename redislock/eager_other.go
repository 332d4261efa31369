//go:build !unix

package redislock

const readsNow = false // what is there can't be told from what will come

func readNow(uintptr, []byte) int { return 0 }
