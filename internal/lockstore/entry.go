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
	// Server is what the server says about itself; nil when it does not (INFO is
	// refused, say): Coverage then tells why.
	Server *ServerFacts
	// Before is the last time this process saw the same key; nil when it never did.
	Before *Sighting
	// Similar are other Redis keys that exist and read alike: the id in another
	// case, with or without blanks at its ends, in another normal form.
	Similar []string
}

// ServerFacts are what decides how far the absence of a key can be trusted. They
// are up to two seconds old.
type ServerFacts struct {
	// RunID is another one after each start; Role is master or slave.
	RunID, Role string
	// Now is the server's clock when it answered. Zero when TIME is refused.
	Now time.Time
	// Uptime is how long the server has run.
	Uptime time.Duration
	// Persistent: RDB or AOF is on, so that a restart may keep keys. Valid when PersistentKnown.
	Persistent, PersistentKnown bool
	// Evicted is how many keys it has evicted for want of memory since it started.
	Evicted uint64
	// NoneEvictedFor is for how long, back from now, it is known to have evicted
	// nothing: a process that has just begun to look knows less. Equal to Uptime
	// when it never has. A count that somebody reset before this process looked
	// (CONFIG RESETSTAT) cannot be told from one that never rose.
	NoneEvictedFor time.Duration
}

// Sighting is one earlier look at a key.
type Sighting struct {
	At    time.Time
	Found bool
	// Value as in Entry.
	Value string
	// Expires is when the key was to expire; zero when it had no TTL.
	Expires time.Time
	// RunID and Role are those of the server that answered; empty when it did not tell.
	RunID string
	Role  string
	// Renewed: with this value, an earlier look had seen an earlier expiry.
	Renewed bool
	// Earlier is the last look that saw another holder: the key with another
	// value, or before it was gone for a while. Zero when none did.
	Earlier time.Time
}

// MaxValue is how many bytes of a value are read: owner tokens and stored
// results are short; a longer value is shown cut.
const MaxValue = 4096
