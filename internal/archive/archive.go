package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options of an Archive.
type Options struct {
	// Directory for the files; it is made when it does not exist. Mandatory.
	Directory string
	// Table is "database.table", Key its integer primary key. Mandatory.
	Table, Key string
	// Compression of the frames. Mandatory.
	Compression Compression
	// MaxBytes is the size at which a file is followed by the next. Mandatory.
	MaxBytes int64
}

// Archive takes batches of one table. It is used by one goroutine, of one process,
// at a time: the lease of the table sees to that.
type Archive struct {
	options Options
	now     func() time.Time
	encode  func(text []byte) ([]byte, error)
	// data and index are nil until the first batch of a file.
	data, index *os.File
	columns     []string
	// size is the length of the data up to the last batch that went.
	size int64
	// open is the batch whose rows may or may not be gone.
	open *batch
	// pending are the keys of a batch that an earlier run has left open.
	pending []uint64
}

const (
	dataSuffix  = ".ndjson"
	indexSuffix = ".index"
)

// Open looks for a batch that an earlier run has left open; see Pending. It makes
// the directory, and no file before the first batch.
func Open(o Options) (*Archive, error) {
	if o.Directory == "" || o.Table == "" || o.Key == "" || o.MaxBytes <= 0 {
		return nil, errors.New("archive: directory, table, key and size are mandatory")
	}
	if _, ok := suffixes[o.Compression]; !ok {
		return nil, fmt.Errorf("archive: no compression %q; use gzip or zstd", o.Compression)
	}
	if err := os.MkdirAll(o.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("archive: make the directory: %w", err)
	}
	encode, err := newEncoder(o.Compression)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	a := &Archive{options: o, now: time.Now, encode: encode}
	newest, err := a.newest()
	if err != nil || newest == "" {
		return a, err
	}
	if err := a.resume(newest); err != nil {
		return nil, errors.Join(fmt.Errorf("archive: take up %s: %w", newest, err), a.Close())
	}
	return a, nil
}

// newest is the path of the table's last index; empty without one.
func (a *Archive) newest() (string, error) {
	entries, err := os.ReadDir(a.options.Directory)
	if err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	newest := ""
	for _, e := range entries { // sorted by name, which is by time
		rest, ours := strings.CutPrefix(e.Name(), fileName(a.options.Table)+"-")
		if ours && strings.HasSuffix(rest, indexSuffix) {
			newest = filepath.Join(a.options.Directory, e.Name())
		}
	}
	return newest, nil
}

// fileName makes a table's name one that every file system takes, without the
// dash that ends it in the name of a file.
func fileName(table string) string {
	var name []byte
	for _, b := range []byte(table) {
		if b == '.' || b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' {
			name = append(name, b)
		} else {
			name = fmt.Appendf(name, "~%02x", b)
		}
	}
	return string(name)
}

// resume opens the newest file when its last batch is open, and cuts off what a
// crash has left behind the last complete line.
func (a *Archive) resume(path string) (err error) {
	c, err := readIndex(path)
	if err != nil || c.Table == "" {
		// Without a complete header no batch was ever durable.
		return err
	}
	if c.open == nil {
		return nil
	}
	dataPath := strings.TrimSuffix(path, indexSuffix)
	rows, err := readBatch(dataPath, c.header, *c.open)
	if err != nil {
		return err
	}
	key := slices.Index(c.Columns, c.Key)
	for _, row := range rows {
		id, err := parseID(row[key])
		if err != nil {
			return err
		}
		a.pending = append(a.pending, id)
	}
	if a.data, err = os.OpenFile(dataPath, os.O_RDWR, 0); err != nil {
		return err
	}
	if a.index, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0); err != nil {
		return err
	}
	a.columns, a.open, a.size = c.Columns, c.open, c.open.Offset
	return a.index.Truncate(c.end)
}

// Pending lists the keys of a batch that was stored by a run which then ended
// without telling whether the rows went from the table. Settle must be called
// before the next batch.
func (a *Archive) Pending() []uint64 { return a.pending }

// Keep stores the rows durably as one batch. On an error nothing of them counts.
func (a *Archive) Keep(columns []string, rows []Row) error {
	if a.open != nil {
		return errors.New("archive: the batch before is not settled")
	}
	if a.data != nil && (a.size >= a.options.MaxBytes || !slices.Equal(columns, a.columns)) {
		if err := a.Close(); err != nil {
			return err
		}
	}
	if a.data == nil {
		if err := a.begin(columns); err != nil {
			return fmt.Errorf("archive: begin a file: %w", err)
		}
	}
	frame, err := a.frame(columns, rows)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	sum := sha256.Sum256(frame)
	b := batch{Offset: a.size, Bytes: int64(len(frame)), Rows: len(rows), SHA256: hex.EncodeToString(sum[:])}
	if err := a.store(frame, b); err != nil {
		return fmt.Errorf("archive: write %s: %w", a.data.Name(), errors.Join(err, a.data.Truncate(a.size)))
	}
	a.open = &b
	return nil
}

func (a *Archive) frame(columns []string, rows []Row) ([]byte, error) {
	var text []byte
	var err error
	for _, row := range rows {
		if text, err = appendRow(text, columns, row); err != nil {
			return nil, err
		}
	}
	return a.encode(text)
}

// store writes the frame where the last batch that went ends, and only then the index.
func (a *Archive) store(frame []byte, b batch) error {
	if _, err := a.data.WriteAt(frame, b.Offset); err != nil {
		return err
	}
	if err := a.data.Sync(); err != nil {
		return err
	}
	return a.note(line{Batch: &b}, true)
}

// note appends a line to the index. A line that could not be written whole is cut off.
func (a *Archive) note(l line, durable bool) error {
	end, err := a.index.Seek(0, 2)
	if err != nil {
		return err
	}
	if _, err = a.index.Write(l.encode()); err == nil && durable {
		err = a.index.Sync()
	}
	if err != nil {
		return errors.Join(err, a.index.Truncate(end))
	}
	return nil
}

// Settle says whether the rows of the last batch went from the table. Rows that
// stayed are dropped from the file.
func (a *Archive) Settle(gone bool) error {
	if a.open == nil {
		return nil
	}
	// Until the note is durable, a crash leaves the batch open, and the table is
	// asked. Before its frame is dropped, nobody may need it any more.
	if err := a.note(line{Gone: &gone}, !gone); err != nil {
		return fmt.Errorf("archive: write %s: %w", a.index.Name(), err)
	}
	b := *a.open
	a.open, a.pending = nil, nil
	if gone {
		a.size = b.Offset + b.Bytes
		return nil
	}
	if err := a.data.Truncate(b.Offset); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// begin makes the next file.
func (a *Archive) begin(columns []string) (err error) {
	if !slices.Contains(columns, a.options.Key) {
		return fmt.Errorf("the key %q is none of the columns %q", a.options.Key, columns)
	}
	created := a.now().UTC()
	path := filepath.Join(a.options.Directory, fileName(a.options.Table)+"-"+created.Format("20060102T150405.000000000Z")+dataSuffix+suffixes[a.options.Compression])
	if a.data, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if a.index, err = os.OpenFile(path+indexSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return errors.Join(err, a.Close())
	}
	a.columns, a.size = slices.Clone(columns), 0
	h := header{Table: a.options.Table, Columns: a.columns, Key: a.options.Key, Compression: a.options.Compression, Created: created}
	if err := a.note(line{Header: &h}, true); err != nil {
		return errors.Join(err, a.Close())
	}
	return syncDirectory(a.options.Directory)
}

// syncDirectory makes the names of new files durable.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close ends the file. A batch that is not settled stays open for the next run. It
// may be called again.
func (a *Archive) Close() error {
	var errs []error
	for _, f := range []*os.File{a.data, a.index} {
		if f != nil {
			errs = append(errs, f.Sync(), f.Close())
		}
	}
	a.data, a.index, a.open, a.size = nil, nil, nil, 0
	return errors.Join(errs...)
}
