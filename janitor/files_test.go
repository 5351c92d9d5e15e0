package janitor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"idemscope/internal/archive"
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
