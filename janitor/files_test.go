package janitor

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"idemscope/internal/archive"
	"idemscope/internal/testkit"
)

// archiveFiles lists the data files of a directory, oldest first.
func archiveFiles(t testing.TB, directory string) (paths []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "*.ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// keeps: rows that go are kept elsewhere.
func (p place) keeps() bool { return p.archive != "" || p.files != "" }

// archived are the rows that a place has let go to a table or to files.
func (p place) archived(t testing.TB, db *testkit.Database) map[string]string {
	t.Helper()
	if p.files != "" {
		return rowsInFiles(t, p.files)
	}
	return rowsOf(t, db.DB, p.archive, "1 = 1")
}

// rowsInFiles reads every row of the files as rowsOf reads a table. A row that is
// there twice fails the test.
func rowsInFiles(t testing.TB, directory string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range archiveFiles(t, directory) {
		f, err := archive.OpenFile(path)
		if err != nil {
			if strings.Contains(err.Error(), "holds no batch") {
				continue // a sweep died before its first batch
			}
			t.Fatal(err)
		}
		err = f.Each(func(rows []archive.Row) error {
			for _, row := range rows {
				var b strings.Builder
				for _, value := range row {
					if value == nil {
						b.WriteString("<nil>|")
					} else {
						fmt.Fprintf(&b, "%q|", value)
					}
				}
				id, _, _ := strings.Cut(b.String(), "|")
				if _, twice := all[id]; twice {
					t.Errorf("row %s is archived twice", id)
				}
				all[id] = b.String()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestEveryKindOfColumnGoesIntoFilesAsItIs: values whose text the server would
// round, translate or cut on their way.
func TestEveryKindOfColumnGoesIntoFilesAsItIs(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, oddRecord)
	db.Exec(t, oddRows)
	p := recordsIn(db)
	p.files = t.TempDir()
	want := hexOf(t, db, "idempotent_record", "id < 9")
	if r := sweepNow(t, hire(t, p.task(t)), Done); r.Gone() != 3 {
		t.Fatalf("%+v", r.Tables[0])
	}
	got := rowsInFiles(t, p.files)
	if len(got) != 3 {
		t.Fatalf("%q", got)
	}
	// The same bytes, told by the server in hex before they went.
	for id, columns := range want {
		for _, bytes := range columns {
			if !strings.Contains(got[id], bytes) {
				t.Errorf("row %s holds no %s: %s", id, bytes, got[id])
			}
		}
	}
}

const oddRecord = `CREATE TABLE idempotent_record (
	id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
	biz_id VARCHAR(128) CHARACTER SET utf8mb4 NOT NULL, biz_type VARCHAR(64) CHARACTER SET latin1 NOT NULL, status TINYINT NOT NULL,
	create_time DATETIME(6) NOT NULL, update_time TIMESTAMP(3) NULL,
	result MEDIUMBLOB NULL, note TEXT CHARACTER SET gbk NULL, flags BIT(12) NULL, ratio FLOAT NULL, share DOUBLE NULL, price DECIMAL(30,10) NULL,
	kind ENUM('a', 'ü') CHARACTER SET latin1 NULL, twice BIGINT AS (status * 2) VIRTUAL, more VARBINARY(40) NULL)`

const oddRows = `INSERT INTO idempotent_record (id, biz_id, biz_type, status, create_time, update_time, result, note, flags, ratio, share, price, kind, more) VALUES
	(1, 'tab\tnew\nline\\ \0 "quote" 🙂', 'größe', 2, '2020-01-01 00:00:00.123456', '2020-01-01 00:00:00.987', X'00FF0A0D5C2200', '中文', b'101010101010', 0.1, 0.1, 12345678901234567890.0123456789, 'ü', X'FFFE00'),
	(2, '', '', 2, '2020-01-01', '2020-01-01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(3, '  padded  ', 'x ', 2, '2020-01-01', '2020-01-01', '', '', b'0', 16777217, 1e308, -0.5, 'a', ''),
	(9, 'newest', 'x', 1, UTC_TIMESTAMP(), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`

// hexOf reads the columns whose bytes matter, as the quoted text of those bytes.
func hexOf(t testing.TB, db *testkit.Database, table, condition string) map[string][]string {
	t.Helper()
	rows, err := db.DB.Queryx("SELECT id, HEX(biz_id), HEX(biz_type), HEX(result), HEX(note), LPAD(HEX(flags), 4, '0'), HEX(kind), HEX(more) FROM " + table + " WHERE " + condition)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string][]string{}
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%q", fmt.Sprint(values[0]))
		for _, v := range values[1:] {
			text, _ := v.([]byte)
			raw, err := hex.DecodeString(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if v != nil {
				all[id] = append(all[id], fmt.Sprintf("%q|", raw))
			}
		}
	}
	return all
}
