package archive

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Compression of a file. Words are those of the configuration.
type Compression string

// The compressions. The usual tools read either: zstdcat, zcat.
const (
	Zstd Compression = "zstd"
	Gzip Compression = "gzip"
)

var suffixes = map[Compression]string{Zstd: ".zst", Gzip: ".gz"}

// maxFrame bounds what one batch may come to when it is read, in bytes.
const maxFrame = 1 << 30

// newEncoder returns a function that makes one frame of a text. It is not safe for
// concurrent use.
func newEncoder(c Compression) (func(text []byte) ([]byte, error), error) {
	if c == Zstd {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return func(text []byte) ([]byte, error) { return w.EncodeAll(text, nil), nil }, err
	}
	w := gzip.NewWriter(nil)
	return func(text []byte) ([]byte, error) {
		var b bytes.Buffer
		w.Reset(&b)
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		return b.Bytes(), nil
	}, nil
}

// decode reads the text of one frame.
func decode(c Compression, frame []byte) (text []byte, err error) {
	var r io.Reader
	switch c {
	case Gzip:
		if r, err = gzip.NewReader(bytes.NewReader(frame)); err != nil {
			return nil, err
		}
	case Zstd:
		z, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("no compression %q", c)
	}
	text, err = io.ReadAll(io.LimitReader(r, maxFrame+1))
	if err == nil && len(text) > maxFrame {
		err = fmt.Errorf("a batch of more than %d bytes", maxFrame)
	}
	return text, err
}

// readBatch reads the rows of one batch and checks them against the index.
func readBatch(path string, h header, b batch) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if b.Bytes < 0 || b.Bytes > maxFrame {
		return nil, fmt.Errorf("%s: a batch of %d bytes", path, b.Bytes)
	}
	frame := make([]byte, b.Bytes)
	if _, err := f.ReadAt(frame, b.Offset); err != nil {
		return nil, fmt.Errorf("%s: read %d bytes at %d: %w", path, b.Bytes, b.Offset, err)
	}
	if sum := sha256.Sum256(frame); hex.EncodeToString(sum[:]) != b.SHA256 {
		return nil, fmt.Errorf("%s: the %d bytes at %d are not those that were written: their checksum differs", path, b.Bytes, b.Offset)
	}
	text, err := decode(h.Compression, frame)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rows []Row
	for l := range bytes.Lines(text) {
		row, err := parseRow(l, h.Columns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, row)
	}
	if len(rows) != b.Rows {
		return nil, fmt.Errorf("%s: a batch has %d rows, its index says %d", path, len(rows), b.Rows)
	}
	return rows, nil
}

func parseID(value []byte) (uint64, error) {
	id, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no id: %w", value, err)
	}
	return id, nil
}
