//go:build !unix

package cli

import "io"

func readerGone(io.Writer) bool { return false }

const brokenPipe = exitSignal + 13
