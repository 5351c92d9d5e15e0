// Package archive keeps rows in files when they are deleted from a table, and
// reads them back: one compressed frame a batch, one JSON object a row, and an
// index beside the file with the place and the checksum of every batch.
//
// A batch is durable before Keep returns. Whether its rows then went from the
// table is written behind it; after a crash the last batch alone can be open, and
// the table knows. This package does not ask it: that is for whoever deletes.
package archive
