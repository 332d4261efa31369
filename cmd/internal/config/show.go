package config

import (
	"net/url"

	"github.com/goccy/go-yaml"
)

// Show writes the configuration as it is used: defaults filled in, passwords
// hidden.
func (c *Config) Show() ([]byte, error) {
	shown := *c
	if u, err := url.Parse(shown.Store.URL); err == nil {
		shown.Store.URL = u.Redacted()
	}
	return yaml.MarshalWithOptions(shown, yaml.OmitZero(), yaml.IndentSequence(true))
}
