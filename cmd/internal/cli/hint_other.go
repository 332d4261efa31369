//go:build !unix

package cli

func scriptHint(error) string { return "" }
