// Package config reads the configuration of the job runner: one YAML file, read
// strictly. Every mistake is found in one go and shown with its line and a caret;
// a key that is not known is one. What is read is complete: defaults are filled
// in, and every job can be run as it stands.
package config
