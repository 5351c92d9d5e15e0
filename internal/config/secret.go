package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// masked is what a secret looks like wherever it is printed.
const masked = "<secret>"

// Secret is a credential. Every way of printing or encoding it gives
// "<secret>" (an empty secret stays empty), also inside other values. Keep it
// in exported fields, and not as the key of a map: fmt does not ask the methods
// of unexported fields, nor encoding/json those of keys that are strings.
type Secret string

// Reveal returns the credential itself, for the one call that needs it.
func (s Secret) Reveal() string { return string(s) }

// String returns the mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString returns the mask.
func (s Secret) GoString() string { return s.String() }

// Format writes the mask, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the mask as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML returns the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
