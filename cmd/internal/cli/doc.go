// Package cli is the command dibs: a file for each command, and what they share.
package cli
