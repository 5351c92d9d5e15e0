package lockstore

import (
	"time"

	"idemscope/internal/flow"
)

// Entry is one Redis key as it was seen.
type Entry struct {
	flow.Observation
	// Key is the whole key, prefix included.
	Key string
	// Type is what Redis calls the value's type ("string", "hash", ...). Empty unless found.
	Type string
	// Foreign: the key exists but holds something that is no lock or marker of
	// this kind (not a string). Its value is not read.
	Foreign bool
	// Value holds the first MaxValue bytes of a string value.
	Value string
	// Length is the full length of a string value in bytes.
	Length int64
	// NoTTL: the key never expires.
	NoTTL bool
	// TTL is what remained when it was read. Valid when found and not NoTTL.
	TTL time.Duration
}

// MaxValue is how many bytes of a value are read: owner tokens and stored
// results are short; a longer value is shown cut.
const MaxValue = 4096
