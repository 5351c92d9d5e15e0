package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// header is the first line of an index.
type header struct {
	Table       string      `json:"table"`
	Columns     []string    `json:"columns"`
	Key         string      `json:"key"`
	Compression Compression `json:"compression"`
	Created     time.Time   `json:"created"`
}

// batch is one line of an index: a frame of the file. The line behind it says
// whether its rows went from the table.
type batch struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
	SHA256 string `json:"sha256"`
}

// line is any line of an index; exactly one field is set.
type line struct {
	Header *header `json:"file,omitempty"`
	Batch  *batch  `json:"batch,omitempty"`
	// Gone: the rows of the batch before are deleted from the table; false: they
	// stayed, and the next batch takes the place of that one.
	Gone *bool `json:"gone,omitempty"`
}

func (l line) encode() []byte {
	text, _ := json.Marshal(l) // no field can fail
	return append(text, '\n')
}

// contents are what an index says.
type contents struct {
	header
	// batches whose rows went from the table.
	batches []batch
	// open is the last batch, while nobody has said what became of its rows.
	open *batch
	// end is where the index is complete; behind it there may be a torn line.
	end int64
}

// readIndex reads an index up to its last complete line.
func readIndex(path string) (c contents, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	for n := 1; ; n++ {
		end := bytes.IndexByte(text[c.end:], '\n')
		if end < 0 {
			break
		}
		var l line
		if err := json.Unmarshal(text[c.end:c.end+int64(end)], &l); err != nil {
			return c, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if err := c.take(l, n); err != nil {
			return c, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		c.end += int64(end) + 1
	}
	return c, nil
}

func (c *contents) take(l line, n int) error {
	switch {
	case n == 1 && l.Header != nil:
		c.header = *l.Header
	case n > 1 && l.Batch != nil && c.open == nil:
		c.open = l.Batch
	case n > 1 && l.Gone != nil && c.open != nil:
		if *l.Gone {
			c.batches = append(c.batches, *c.open)
		}
		c.open = nil
	default:
		return fmt.Errorf("a line that cannot stand here")
	}
	return nil
}
