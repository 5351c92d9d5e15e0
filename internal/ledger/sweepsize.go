package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Footprint is how much room a table takes, by the server's own statistics, which
// may be old.
type Footprint struct {
	// Row is the average length of a row in bytes; 0 when the server has none.
	Row int64
	// Data and Index are the bytes in use, Free those of the file that wait to be
	// used again.
	Data, Index, Free int64
}

const footprintSQL = "SELECT AVG_ROW_LENGTH, DATA_LENGTH, INDEX_LENGTH, DATA_FREE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?"

// Footprint asks the server how large the table is. known is false when it does
// not tell. Explain words the error.
func (t *SweepTable) Footprint(ctx context.Context) (f Footprint, known bool, err error) {
	var row, data, index, free sql.NullInt64
	q := statement{text: footprintSQL, args: []any{t.shard.table.database, t.shard.table.name}}
	err = t.shard.server.scan(ctx, q, []any{&row, &data, &index, &free}, func() {
		known = data.Valid
		f = Footprint{Row: row.Int64, Data: data.Int64, Index: index.Int64, Free: free.Int64}
	})
	if err != nil {
		return f, false, fmt.Errorf("ask for the size of %s: %w", t.Name(), err)
	}
	return f, known, nil
}
