package ledger

import (
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

func TestCheck(t *testing.T) {
	const columns = "biz_id VARCHAR(64) COLLATE utf8mb4_nopad_bin NOT NULL, biz_type VARCHAR(64) COLLATE utf8mb4_nopad_bin NOT NULL, status TINYINT, create_time DATETIME, update_time DATETIME"
	cases := []struct {
		name, ddl string
		spec      MappingSpec
		want      []string
	}{
		{"good", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, nil},
		{"unique id alone", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_id)", MappingSpec{}, nil},
		{"partitioned by time", "id BIGINT AUTO_INCREMENT, " + columns + ", PRIMARY KEY (id, create_time), UNIQUE KEY uk (biz_type, biz_id, create_time)", MappingSpec{},
			[]string{"no_unique_key: the unique key uk also holds create_time"}},
		{"no unique key", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", KEY (biz_type, biz_id)", MappingSpec{}, []string{"no_unique_key: nothing in MySQL stops"}},
		{"no index at all", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns, MappingSpec{}, []string{"no_unique_key: no unique key", "no_lookup_index: read the whole table"}},
		{"nullable", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "bin NOT NULL, status", "bin NULL, status", 1) + ", UNIQUE KEY uk (biz_type, biz_id)", MappingSpec{},
			[]string{"nullable_unique_key: column biz_type of the unique key uk may be NULL"}},
		{"prefix", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY uk (biz_type, biz_id(8))", MappingSpec{}, []string{"prefix_unique_key: only the beginning of biz_id"}},
		{"text key", "id VARCHAR(36) PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"no_integer_key: no single integer primary key"}},
		{"no primary key", columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"no_integer_key: "}},
		{"named key without an index", "id BIGINT AUTO_INCREMENT PRIMARY KEY, seq BIGINT, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{Columns: map[string]string{"id": "seq"}}, []string{"no_integer_key: "}},
		{"key taken away", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{Columns: map[string]string{"id": "-"}}, nil},
		{"missing columns", "id BIGINT AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(9), biz_type VARCHAR(9), create_time DATETIME", MappingSpec{}, []string{"missing_column: no column status (status)", "missing_column: no column update_time (updated)"}},
		{"no time", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{Columns: map[string]string{"created": "", "updated": "-"}}, []string{"no_time_column: "}},
		{"odd time", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + columns + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{Columns: map[string]string{"updated": "status", "created": "biz_id"}}, []string{"time_column_type: biz_id is of type varchar"}},
		{"folding", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "utf8mb4_nopad_bin", "utf8mb4_general_ci", 1) + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"folds_case: column biz_id (utf8mb4_general_ci)", "ignores_padding: column biz_id"}},
		{"padding", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "utf8mb4_nopad_bin", "utf8mb4_bin", 1) + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"ignores_padding: column biz_id (utf8mb4_bin)"}},
		{"char", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "VARCHAR(64)", "CHAR(64)", 1) + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"ignores_padding: column biz_id (utf8mb4_nopad_bin)"}},
		{"latin1", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "VARCHAR(64) COLLATE utf8mb4_nopad_bin", "VARCHAR(64) CHARACTER SET latin1", 1) + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, []string{"folds_case: latin1_swedish_ci", "ignores_padding: latin1"}},
		{"uca1400", "id BIGINT AUTO_INCREMENT PRIMARY KEY, " + strings.Replace(columns, "utf8mb4_nopad_bin", "uca1400_nopad_as_cs", 1) + ", UNIQUE KEY (biz_type, biz_id)", MappingSpec{}, nil},
	}
	db := testkit.MySQL(t)
	s := openServer(t, db)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			db.Exec(t, "DROP TABLE IF EXISTS checked")
			db.Exec(t, "CREATE TABLE checked ("+c.ddl+")")
			problems := openLedger(t, s, "checked", "idempotent_record", c.spec).Check(soon(t))
			expectProblems(t, problems, c.want...)
			for _, p := range problems {
				if !strings.Contains(p.Text.EN, db.Name+".checked") || !strings.Contains(p.Text.ZH, db.Name+".checked") {
					t.Errorf("the table is not named: %+v", p.Text)
				}
			}
		})
	}
	expectProblems(t, openLedger(t, s, "nowhere", "idempotent_record", MappingSpec{}).Check(soon(t)), "missing_table: nowhere: there is no such table")
	proxy := testkit.NewProxy(t, db.Addr)
	proxy.Drop(true)
	gone := openServer(t, db, func(o *ServerOptions) { o.Address = proxy.Addr })
	expectProblems(t, openLedger(t, gone, "checked", "idempotent_record", MappingSpec{}).Check(soon(t)), "unreadable: connection")
}
