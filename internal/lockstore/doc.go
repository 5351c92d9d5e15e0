// Package lockstore looks at locks and markers in Redis (single server,
// Sentinel or Cluster) by their exact keys, and reads the counters that
// instrumented consumers keep. It alone talks to Redis.
//
// It works with a Redis user that may run TYPE, STRLEN, GETRANGE and PTTL on the
// keys of locks and markers; SSCAN and HMGET on the counters; PING for Ping;
// SELECT when db is not 0; CLUSTER SLOTS in a cluster; and, on sentinels,
// SENTINEL GET-MASTER-ADDR-BY-NAME.
//
// It is not a lock library: it takes no lock, and it runs no command that
// writes, blocks, or walks the key space.
package lockstore
