// Package janitor cleans ledgers: completed records that have not changed for
// longer than the retention are deleted or archived, a small transaction at a
// time. It may always stop and may always be run again; it plans, paces itself,
// holds back when the server is busy, and counts what it does.
//
// It contains no SQL: package ledger judges every row in the statement that
// deletes it. It is not a place for changes of single records, and it never
// touches a record that is in processing, failed, or not understood.
package janitor
