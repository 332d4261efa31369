package config

import (
	"github.com/goccy/go-yaml"

	"github.com/dibslock/dibs/driver"
)

// Show writes the configuration as it is used: defaults filled in, passwords
// hidden.
func (c *Config) Show() ([]byte, error) {
	shown := *c
	if u, err := driver.ParseURL(shown.Store.URL); err == nil {
		shown.Store.URL = u.Redacted()
	}
	return yaml.MarshalWithOptions(shown, yaml.OmitZero(), yaml.IndentSequence(true))
}
