package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var columns = []string{"id", "biz_id", "result", `odd "name" <ü>`}

func options(t *testing.T) Options {
	return Options{Directory: filepath.Join(t.TempDir(), "archive"), Table: "shop.idempotent_record", Key: "id", Compression: Zstd, MaxBytes: 1 << 20}
}

func open(t *testing.T, o Options) *Archive {
	t.Helper()
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rows makes rows from the given ids.
func rows(ids ...int) (all []Row) {
	for _, id := range ids {
		all = append(all, Row{fmt.Append(nil, id), fmt.Appendf(nil, "ORD%d", id), nil, []byte("x")})
	}
	return all
}

// files lists the data files of the archive, oldest first.
func files(t *testing.T, o Options) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(o.Directory, "*.ndjson.*"))
	must(t, err)
	return slices.DeleteFunc(found, func(p string) bool { return strings.HasSuffix(p, indexSuffix) })
}

// stored are the rows of all files, in their order.
func stored(t *testing.T, o Options) (all []Row) {
	t.Helper()
	for _, path := range files(t, o) {
		f, err := OpenFile(path)
		must(t, err)
		n := int64(0)
		must(t, f.Each(func(rows []Row) error {
			all, n = append(all, rows...), n+int64(len(rows))
			return nil
		}))
		if n != f.Rows {
			t.Errorf("%s: %d rows, %d announced", path, n, f.Rows)
		}
	}
	return all
}

func TestEveryByteComesBack(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := []Row{
		{[]byte("1"), []byte{}, nil, []byte("")},
		{[]byte("18446744073709551615"), []byte("tab\tnewline\nreturn\rquote\"back\\slash\x00nul"), every, []byte("null")},
		{[]byte("3"), []byte("表情 🙂 \u202eRTL \u2028 <script>&amp;"), []byte("\xff"), []byte(`{"hex":"00"}`)},
		{[]byte("4"), []byte("  padded  "), []byte("\ufffd"), bytes.Repeat([]byte("long"), 100_000)},
	}
	for _, compression := range []Compression{Zstd, Gzip} {
		o := options(t)
		o.Compression = compression
		a := open(t, o)
		must(t, a.Keep(columns, want))
		must(t, a.Settle(true))
		must(t, a.Close())
		if got := stored(t, o); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q", compression, got)
		}
	}
}

func TestABatchThatStayedLeavesNoTrace(t *testing.T) {
	o := options(t)
	a := open(t, o)
	must(t, a.Keep(columns, rows(1, 2)))
	must(t, a.Settle(true))
	must(t, a.Keep(columns, rows(3, 4, 5)))
	must(t, a.Settle(false))
	must(t, a.Keep(columns, rows(4)))
	must(t, a.Settle(true))
	must(t, a.Keep(columns, rows(6)))
	must(t, a.Settle(false))
	must(t, a.Close())
	if got := stored(t, o); !reflect.DeepEqual(got, rows(1, 2, 4)) {
		t.Errorf("%q", got)
	}
	if len(files(t, o)) != 1 {
		t.Error("more than one file")
	}
}

func TestANextFileBeginsWhenOneIsFullOrTheColumnsChange(t *testing.T) {
	o := options(t)
	o.MaxBytes = 1
	a := open(t, o)
	for id := range 3 {
		must(t, a.Keep(columns, rows(id)))
		must(t, a.Settle(true))
	}
	a.options.MaxBytes = 1 << 20
	must(t, a.Keep([]string{"id", "more"}, []Row{{[]byte("7"), nil}}))
	must(t, a.Settle(true))
	must(t, a.Close())
	if n := len(files(t, o)); n != 4 {
		t.Errorf("%d files", n)
	}
	if got := stored(t, o); !reflect.DeepEqual(got, append(rows(0, 1, 2), Row{[]byte("7"), nil})) {
		t.Errorf("%q", got)
	}
}

// TestACrashAtAnyByteIsSurvived cuts the index and the data where a crash could
// have cut them, and takes the archive up again.
func TestACrashAtAnyByteIsSurvived(t *testing.T) {
	o := options(t)
	a := open(t, o)
	must(t, a.Keep(columns, rows(1, 2)))
	must(t, a.Settle(true))
	must(t, a.Keep(columns, rows(3)))
	must(t, a.Settle(false))
	must(t, a.Keep(columns, rows(3, 4)))
	must(t, a.Settle(true))
	must(t, a.Close())
	path := files(t, o)[0]
	index, err := os.ReadFile(path + indexSuffix)
	must(t, err)
	data, err := os.ReadFile(path)
	must(t, err)
	for n := range len(index) + 1 {
		if n%7 != 0 && !bytes.Contains(index[max(n-2, 0):min(n+1, len(index))], []byte("\n")) {
			continue // in the middle of a line all bytes are alike
		}
		crashed := o
		crashed.Directory = t.TempDir()
		copied := filepath.Join(crashed.Directory, filepath.Base(path))
		must(t, os.WriteFile(copied+indexSuffix, index[:n], 0o600))
		must(t, os.WriteFile(copied, data, 0o600))
		c, err := readIndex(copied + indexSuffix)
		must(t, err)
		if c.open != nil && c.open.Rows == 1 {
			continue // its frame is overwritten only after the note that it stayed is durable
		}
		a := open(t, crashed)
		want := map[int][]Row{0: nil, 1: rows(1, 2), 2: rows(1, 2, 3, 4)}[len(c.batches)]
		if c.open != nil {
			want = map[int][]Row{0: rows(1, 2), 1: rows(1, 2, 3, 4)}[len(c.batches)]
			if got := a.Pending(); len(got) != 2 {
				t.Fatalf("cut at %d: pending %v", n, got)
			}
			must(t, a.Settle(true))
		} else if a.Pending() != nil {
			t.Fatalf("cut at %d: pending %v", n, a.Pending())
		}
		must(t, a.Keep(columns, rows(9)))
		must(t, a.Settle(true))
		must(t, a.Close())
		if len(c.Columns) == 0 { // no batch was ever durable there
			must(t, os.Remove(copied))
		}
		if got := stored(t, crashed); !reflect.DeepEqual(got, append(slices.Clone(want), rows(9)...)) {
			t.Fatalf("cut at %d: %q", n, got)
		}
	}
}

func TestABatchThatIsOpenIsNotRead(t *testing.T) {
	o := options(t)
	a := open(t, o)
	must(t, a.Keep(columns, rows(1)))
	if err := a.Keep(columns, rows(2)); err == nil {
		t.Error("a second batch was taken before the first was settled")
	}
	must(t, a.Close())
	if _, err := OpenFile(files(t, o)[0]); err == nil || !strings.Contains(err.Error(), "is open") {
		t.Errorf("%v", err)
	}
	b := open(t, o)
	if got := b.Pending(); !slices.Equal(got, []uint64{1}) {
		t.Errorf("pending %v", got)
	}
	must(t, b.Settle(false))
	must(t, b.Close())
	if got := stored(t, o); got != nil {
		t.Errorf("%q", got)
	}
}

func TestAChangedFileIsNamed(t *testing.T) {
	o := options(t)
	a := open(t, o)
	must(t, a.Keep(columns, rows(1, 2, 3)))
	must(t, a.Settle(true))
	must(t, a.Close())
	path := files(t, o)[0]
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)/2] ^= 1
	must(t, os.WriteFile(path, data, 0o600))
	f, err := OpenFile(path)
	must(t, err)
	err = f.Each(func([]Row) error { t.Error("a broken batch was handed on"); return nil })
	if err == nil || !strings.Contains(err.Error(), "checksum") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(path))
	if _, err := OpenFile(path); err == nil {
		t.Error("a file without data was opened")
	}
}

// TestAFullDiskLosesNothing writes to a device that is always full.
func TestAFullDiskLosesNothing(t *testing.T) {
	o := options(t)
	a := open(t, o)
	must(t, a.Keep(columns, rows(1)))
	must(t, a.Settle(true))
	whole := a.data
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	must(t, err)
	defer full.Close()
	a.data = full
	if err := a.Keep(columns, rows(2)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
	a.data = whole
	must(t, a.Keep(columns, rows(3)))
	must(t, a.Settle(true))
	must(t, a.Close())
	if got := stored(t, o); !reflect.DeepEqual(got, rows(1, 3)) {
		t.Errorf("%q", got)
	}
}

func TestFileNamesOfTwoTablesDiffer(t *testing.T) {
	if fileName("shop.a-b") == fileName("shop.a~b") || strings.ContainsAny(fileName("shop.a-b/../ü"), "-/ü") {
		t.Errorf("%s %s", fileName("shop.a-b/../ü"), fileName("shop.a~b"))
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	o := options(t)
	o.Compression = "lzma"
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "gzip or zstd") {
		t.Errorf("%v", err)
	}
	a := open(t, options(t))
	if err := a.Keep([]string{"biz_id"}, nil); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("%v", err)
	}
}
