//go:build !linux

package servers

import "syscall"

// Elsewhere a server's own processes are not known; they end with it.
func (s *Server) backends() []int { return nil }

func signalAll([]int, syscall.Signal) error { return nil }

func pauseAll([]int) error { return nil }

func resumeAll([]int) error { return nil }

func awaitGone([]int) error { return nil }
