// Package lockstore looks at locks and markers in Redis (single server,
// Sentinel or Cluster) by their exact keys, and reads the counters that
// instrumented consumers keep. It alone talks to Redis.
//
// It is not a lock library: it takes no lock, and it runs no command that
// writes, blocks, or walks the key space.
package lockstore
