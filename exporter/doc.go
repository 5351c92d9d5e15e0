// Package exporter turns what idempotent consumers leave behind into Prometheus
// metrics: the rows of ledgers, the counters that instrumented consumers keep,
// locks and markers in Redis, and the totals of queues. One loop per source polls
// on its own clock; /metrics answers from memory and never waits for a store.
//
// It is not a place for verdicts about single keys, and no business id ever
// becomes a label. Ledgers are read in the order of an index only, by primary
// key or by status, so that a cycle costs the same at ten thousand rows and at a
// hundred million.
package exporter
