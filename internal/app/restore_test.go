package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idemscope/internal/flow"
)

func TestRowsGoIntoFilesAndComeBack(t *testing.T) {
	db := oldRecords(t, 20)
	kept := filepath.Join(t.TempDir(), "kept")
	file := cleanupConfig(t, db, "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.Replace(string(text), "action: delete", fmt.Sprintf("action: archive, archive: {directory: %q, compression: gzip}", kept), 1))
	rows := func() (n int) {
		t.Helper()
		if err := db.DB.Get(&n, "SELECT COUNT(*) FROM idempotent_record"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var out bytes.Buffer
	if exit, err := Janitor(t.Context(), JanitorOptions{Config: file, Logger: slog.New(slog.DiscardHandler), Out: &out}); exit != 0 || err != nil || !strings.Contains(out.String(), kept) {
		t.Fatalf("plan: %d %v\n%s", exit, err, &out)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Error("a plan made the directory")
	}
	if exit, err := Janitor(t.Context(), JanitorOptions{Config: file, Execute: true, Logger: slog.New(slog.DiscardHandler), Out: &out}); exit != 0 || err != nil || rows() != 2 {
		t.Fatalf("run: %d %v, %d rows left\n%s", exit, err, rows(), &out)
	}
	files, err := filepath.Glob(filepath.Join(kept, "*.ndjson.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file can be read by others: %v %v", info.Mode(), err)
	}
	restore := func(execute bool, files ...string) (int, string, error) {
		t.Helper()
		var out bytes.Buffer
		exit, err := Restore(t.Context(), RestoreOptions{Config: file, Files: files, Execute: execute, Language: flow.English, Out: &out})
		return exit, out.String(), err
	}
	if exit, said, err := restore(false, files...); exit != 0 || err != nil || rows() != 2 || !strings.Contains(said, "20 rows would come back") || !strings.Contains(said, "--execute") {
		t.Errorf("without execute: %d %v\n%s", exit, err, said)
	}
	if exit, said, err := restore(true, files...); exit != 0 || err != nil || rows() != 22 || !strings.Contains(said, "20 rows are back") {
		t.Errorf("%d %v\n%s", exit, err, said)
	}
	db.Exec(t, "UPDATE idempotent_record SET status = 1 WHERE id = 7")
	if exit, said, err := restore(true, files...); exit != 4 || err != nil || rows() != 22 || !strings.Contains(said, "another row with the id 7") {
		t.Errorf("a changed row: %d %v\n%s", exit, err, said)
	}
	if _, _, err := restore(true, filepath.Join(kept, "nothing.ndjson.gz")); err == nil || !strings.Contains(err.Error(), "nothing.ndjson.gz") {
		t.Errorf("a file that is not there: %v", err)
	}
}
