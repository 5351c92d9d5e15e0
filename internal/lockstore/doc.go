// Package lockstore looks at locks and markers in Redis (single server,
// Sentinel or Cluster) by their exact keys, counts them by a slow sweep of the
// key space, and reads the counters that instrumented consumers keep. It alone
// talks to Redis.
//
// It works with a Redis user that may run TYPE, STRLEN, GETRANGE and PTTL on the
// keys of locks and markers; SSCAN and HMGET on the counters; PING for Ping;
// SELECT when db is not 0; CLUSTER SLOTS in a cluster; and, on sentinels,
// SENTINEL GET-MASTER-ADDR-BY-NAME. A sweep needs SCAN, and PTTL on the keys of
// locks and markers; the trail XREAD, XRANGE, XREVRANGE and XLEN on its stream. What
// is more is asked for and done without when refused: INFO (restarts and
// evictions, and whether a sweep still talks to the same server), TIME (the
// server's clock) and CONFIG GET (whether expirations are published, and whether
// a restart keeps keys). Expirations need SUBSCRIBE to the
// channel __keyevent@DB__:expired. A Release needs EVAL, TYPE, PTTL, GET and DEL on
// the keys of locks and markers.
//
// It is not a lock library: it takes no lock, and it runs no command that
// blocks, or takes the server's time in proportion to its keys: a sweep walks
// them a page at a time, at the pace that it is given. Nothing writes but
// Release, which deletes one key that is still as it was seen.
package lockstore
