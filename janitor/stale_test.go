package janitor

import (
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

// TestADeleteReadsARangeAndNeverTheWholeTable: also on a server that takes a table
// for nearly empty, as after an import, and would find reading all of it the
// cheapest way. Here the table is nearly empty.
func TestADeleteReadsARangeAndNeverTheWholeTable(t *testing.T) {
	everyWay(t, 3, func(t *testing.T, db *testkit.Database, p place) {
		plan, err := hire(t, p.task(t)).Plan(soon(t), "orders", false)
		if err != nil {
			t.Fatal(err)
		}
		deletes := 0
		for _, statement := range plan.Tables[0].SQL {
			if !strings.HasPrefix(statement, "DELETE") {
				continue // the others name their index
			}
			deletes++
			rows, err := db.DB.Queryx("EXPLAIN " + statement)
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			defer rows.Close()
			for rows.Next() {
				way := map[string]any{}
				if err := rows.MapScan(way); err != nil {
					t.Fatal(err)
				}
				if kind, _ := way["type"].([]byte); string(kind) != "range" {
					t.Errorf("read by %s: %s", kind, statement)
				}
			}
		}
		if deletes != 1 {
			t.Errorf("%d statements delete", deletes)
		}
	})
}
