package archive

import (
	"fmt"
	"os"
	"strings"
)

// File is a finished file of an archive.
type File struct {
	// Path of the data; that of the index has .index behind it.
	Path string
	// Table is "database.table", Key its primary key, Columns those of every row.
	Table, Key string
	Columns    []string
	// Rows and Batches are how many the file holds.
	Rows    int64
	Batches int

	contents contents
}

// OpenFile reads the index of a file. Errors: the file or its index is missing or
// broken, or its last batch is open, so that nobody knows whether its rows are in
// the table still.
func OpenFile(path string) (*File, error) {
	path = strings.TrimSuffix(path, indexSuffix)
	c, err := readIndex(path + indexSuffix)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the index of an archive: %w", err)
	case c.Table == "":
		return nil, fmt.Errorf("%s%s holds no batch", path, indexSuffix)
	case c.open != nil:
		return nil, fmt.Errorf("the last batch of %s is open: the run that wrote it did not say whether its rows went from %s; run the cleanup task once more, it finds out", path, c.Table)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("read an archive: %w", err)
	}
	f := &File{Path: path, Table: c.Table, Key: c.Key, Columns: c.Columns, Batches: len(c.batches), contents: c}
	for _, b := range c.batches {
		f.Rows += int64(b.Rows)
	}
	return f, nil
}

// Each reads batch after batch, checks it, and hands its rows on until do fails.
func (f *File) Each(do func(rows []Row) error) error {
	for _, b := range f.contents.batches {
		rows, err := readBatch(f.Path, f.contents.header, b)
		if err != nil {
			return err
		}
		if err := do(rows); err != nil {
			return err
		}
	}
	return nil
}
