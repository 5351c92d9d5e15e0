package draft

import (
	"testing"

	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// table makes the facts of a table: columns as "name kind", unique keys as lists.
func table(name string, columns []ledger.ColumnFacts, keys ...[]string) ledger.TableFacts {
	t := ledger.TableFacts{Name: name, Columns: columns}
	for _, k := range keys {
		t.Keys = append(t.Keys, ledger.KeyFacts{Name: "uk", Unique: true, Columns: k})
	}
	return t
}

func column(name, kind string) ledger.ColumnFacts { return ledger.ColumnFacts{Name: name, Kind: kind} }

func commented(name, kind, comment string) ledger.ColumnFacts {
	return ledger.ColumnFacts{Name: name, Kind: kind, Comment: comment}
}

func recordColumns(status ledger.ColumnFacts) []ledger.ColumnFacts {
	return []ledger.ColumnFacts{
		{Name: "id", Kind: "bigint", AutoIncrement: true}, column("biz_id", "varchar"), column("biz_type", "varchar"), status,
		column("create_time", "datetime"), column("update_time", "datetime"),
	}
}

func alone(name string) Group { return Group{Pattern: name, Tables: []string{name}} }

// spec is what the ledger package makes of a guess; it must take it.
func spec(t *testing.T, l *Ledger) ledger.Mapping {
	t.Helper()
	m, err := ledger.NewMapping(l.Preset, l.Spec())
	if err != nil {
		t.Fatalf("%s: %v", l.Table, err)
	}
	return m
}
