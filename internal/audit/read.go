package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"idemscope/internal/flow"
)

// maxRead bounds how much of the file one reading looks at, in bytes.
const maxRead = 16 << 20

// MaxEntries is how many entries one reading gives at most.
const MaxEntries = 500

// Query says which entries are wanted. The zero value wants all.
type Query struct {
	// Key is exactly that of the entry; nil for any.
	Key *flow.Key
	// Flow, Who, Action and Outcome are those of the entry; empty for any.
	Flow, Who, Action string
	Outcome           Outcome
	// After is Page.Next of the page before; empty for the latest entries.
	After string
	// Limit is 1 to MaxEntries; 0 means 100.
	Limit int
}

// Page is a part of the file, the latest entry first.
type Page struct {
	Entries []Entry
	// Next leads to older entries; empty when all were read.
	Next string
	// Bad is how many lines were passed that are no entries: torn by a crash, or
	// written by somebody else.
	Bad int
	// Cut: the page ends because enough was read, not because it is full.
	Cut bool
	// Since is the time of the oldest entry that was read, wanted or not; zero
	// when none was.
	Since time.Time
}

// ErrMark: Query.After is not from a page of this file as it is now.
var ErrMark = errors.New("no such place in the audit file: begin with the latest entries")

// Read reads backwards from the end of the file, or from where a page ended, at
// most 16 MiB. A file that is not there yet has no entries.
func (l *Log) Read(ctx context.Context, q Query) (Page, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		if q.After != "" {
			return Page{}, ErrMark
		}
		return Page{}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("read the audit file %s: %w", l.path, err)
	}
	defer f.Close()
	end, err := q.begin(f)
	if err != nil {
		return Page{}, err
	}
	page, err := q.read(ctx, f, end, maxRead)
	if err != nil {
		return Page{}, fmt.Errorf("read the audit file %s: %w", l.path, err)
	}
	return page, nil
}

// begin is the offset from which on the query reads backwards.
func (q Query) begin(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the audit file %s: %w", f.Name(), err)
	}
	if q.After == "" {
		return info.Size(), nil
	}
	at, err := strconv.ParseInt(q.After, 10, 64)
	if err != nil || at <= 0 || at > info.Size() {
		return 0, ErrMark
	}
	// Pages end between two lines.
	before := make([]byte, 1)
	if _, err := f.ReadAt(before, at-1); err != nil || before[0] != '\n' {
		return 0, ErrMark
	}
	return at, nil
}

func (q Query) read(ctx context.Context, f *os.File, end, most int64) (Page, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, MaxEntries)
	page := Page{Entries: []Entry{}}
	lines := &backwards{file: f, at: end, floor: max(0, end-most-2*maxLine)}
	for start := end; ; {
		if len(page.Entries) == limit || end-start >= most {
			page.Cut = len(page.Entries) < limit
			if start > 0 {
				page.Next = strconv.FormatInt(start, 10)
			}
			return page, nil
		}
		text, at, err := lines.next(ctx)
		if errors.Is(err, io.EOF) {
			return page, nil
		}
		if errors.Is(err, errFloor) {
			page.Bad, page.Cut = page.Bad+1, true
			return page, nil
		}
		if err != nil {
			return Page{}, err
		}
		start = at
		if len(text) == 0 {
			continue // the end of a line that was torn
		}
		e, err := decode(text)
		if err != nil {
			page.Bad++
			continue
		}
		page.Since = e.At
		if q.wants(e) {
			page.Entries = append(page.Entries, e)
		}
	}
}

func (q Query) wants(e Entry) bool {
	return (q.Key == nil || e.Place.Key == *q.Key) && (q.Flow == "" || e.Place.Flow == q.Flow) &&
		(q.Who == "" || e.Who == q.Who) && (q.Action == "" || e.Action == q.Action) && (q.Outcome == "" || e.Outcome == q.Outcome)
}
