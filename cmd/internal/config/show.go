package config

import (
	"github.com/goccy/go-yaml"

	"github.com/dibslock/dibs/driver"
)

// Show writes the configuration as it is used: defaults filled in, passwords
// hidden.
func (c *Config) Show() ([]byte, error) {
	shown := *c
	if shown.Store.URL != "" {
		shown.Store.URL = driver.Redact(shown.Store.URL)
	}
	return yaml.MarshalWithOptions(shown, yaml.OmitZero(), yaml.IndentSequence(true))
}
