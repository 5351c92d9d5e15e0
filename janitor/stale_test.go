package janitor

import (
	"fmt"
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

// TestARowsIDsNeverMakeItReadTheWholeTable: a server that takes a table for nearly
// empty, as after an import, finds reading all of it the cheapest way to some ids.
// Here the table is nearly empty.
func TestARowsIDsNeverMakeItReadTheWholeTable(t *testing.T) {
	everyWay(t, 3, func(t *testing.T, db *testkit.Database, p place) {
		plan, err := hire(t, p.task(t)).Plan(soon(t), "orders", false)
		if err != nil {
			t.Fatal(err)
		}
		ids := "1"
		for id := 2; id < 200; id++ {
			ids += fmt.Sprint(", ", id)
		}
		for _, statement := range plan.Tables[0].SQL {
			if !strings.HasPrefix(statement, "DELETE") {
				continue // the others name their index
			}
			rows, err := db.DB.Queryx("EXPLAIN " + strings.ReplaceAll(statement, "ID, ...", ids))
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
	})
}
