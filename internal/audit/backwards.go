package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// chunk is how much of the file is read at a time.
const chunk = 64 << 10

// backwards yields the lines of a file from an offset back to its beginning.
type backwards struct {
	file *os.File
	// at is where what is held begins; bytes before it were not read.
	at int64
	// held are bytes that were read and not yet given out.
	held []byte
	// cut: a line too long to be an entry was dropped in part.
	cut bool
	// floor is before which offset nothing is read, should no line end stand after it.
	floor int64
}

// errFloor: no line began above the floor.
var errFloor = errors.New("the line is too long to find its beginning")

// next returns the line that ends before what was given out, without its end, and
// the offset at which it begins. Error: io.EOF at the beginning of the file.
func (b *backwards) next(ctx context.Context) (text []byte, start int64, err error) {
	// The line end that closes the line itself is not the one that is looked for.
	for {
		body := b.held
		if n := len(body); n > 0 && body[n-1] == '\n' {
			body = body[:n-1]
		}
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 {
			text, start = body[i+1:], b.at+int64(i)+1
			b.held = b.held[:i+1]
			return b.whole(text), start, nil
		}
		if b.at == 0 {
			if len(b.held) == 0 {
				return nil, 0, io.EOF
			}
			b.held = nil
			return b.whole(body), 0, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if b.at <= b.floor {
			return nil, 0, errFloor
		}
		if err := b.more(); err != nil {
			return nil, 0, err
		}
	}
}

// whole gives up a line of which a part was dropped.
func (b *backwards) whole(text []byte) []byte {
	if b.cut {
		b.cut = false
		return []byte("...")
	}
	return text
}

// more reads one chunk before what is held.
func (b *backwards) more() error {
	size := min(chunk, b.at)
	before := make([]byte, size, int(size)+len(b.held))
	if _, err := b.file.ReadAt(before, b.at-size); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(b.held) > maxLine {
		// No entry is that long. Its beginning is still looked for.
		b.held, b.cut = nil, true
	}
	b.at -= size
	b.held = append(before, b.held...)
	return nil
}
