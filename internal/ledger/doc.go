// Package ledger reads one idempotency table in MySQL or MariaDB (or all the
// shards of one): its schema, the rows of one key, and the tail of new and open
// rows. It alone contains SQL about ledgers.
//
// It is not a place for writes: every session but those of Sweeper and Resetter,
// which have users of their own, is read-only, every
// statement has a time limit, and no statement runs without a bound on the rows
// it touches.
package ledger
