package janitor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"idemscope/internal/flow"
)

// Entry is what a run did with one table, as the history keeps it.
type Entry struct {
	Task   string `json:"task"`
	Ledger string `json:"ledger"`
	// Table is empty for a run that did not come to a table.
	Table   string    `json:"table"`
	Archive string    `json:"archive,omitempty"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Rows    int64     `json:"rows"`
	// Planned is how many rows were to go when the run began, estimated.
	Planned int64 `json:"planned,omitempty"`
	Batches int   `json:"batches"`
	// End is why it ended; WhyEN and WhyZH say more.
	End   Ended  `json:"end"`
	WhyEN string `json:"why_en,omitempty"`
	WhyZH string `json:"why_zh,omitempty"`
	// Cutoff is the time before which rows had to have changed last; nil when the
	// server was not read.
	Cutoff *time.Time `json:"cutoff"`
	// By is who began the run.
	By By `json:"by"`
	// Throttled is for how long it was held up, in seconds by reason.
	Throttled map[Reason]float64 `json:"throttled_seconds,omitempty"`
}

// By is who began a run.
type By string

// Who can begin a run.
const (
	BySchedule By = "schedule"
	ByCommand  By = "command"
)

// Why is the explanation of the end.
func (e Entry) Why() flow.Text { return flow.Text{EN: e.WhyEN, ZH: e.WhyZH} }

// Took is how long it took.
func (e Entry) Took() time.Duration { return e.Ended.Sub(e.Began) }

const (
	// historyEntries is how many entries one file holds; there are two files, so
	// at least as many are kept.
	historyEntries = 500
	// maxEntry bounds one line that is read, in bytes.
	maxEntry = 64 << 10
)

// History is a file of one entry a line. When it is full, it becomes FILE.1, in
// place of the one before, and a new file begins. Several processes may write to
// it. A line that is torn or no entry is left out.
type History struct {
	file    string
	entries int

	mu sync.Mutex
}

// NewHistory names the file. It is made with the first entry.
func NewHistory(file string) *History { return &History{file: file, entries: historyEntries} }

// File is the path of the file.
func (h *History) File() string { return h.file }

// Append adds entries, each with one write, so that lines of several processes do not mix.
func (h *History) Append(entries ...Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.rotate(); err != nil {
		return fmt.Errorf("begin a new cleanup history: %w", err)
	}
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write the cleanup history: %w", err)
		}
		if err := h.write(append(line, '\n')); err != nil {
			return fmt.Errorf("write the cleanup history: %w", err)
		}
	}
	return nil
}

// write adds a line. A line that a crash has torn before it is ended first.
func (h *History) write(line []byte) (err error) {
	file, err := os.OpenFile(h.file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	last := make([]byte, 1)
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = file.Write(line)
	return err
}

// rotate begins a new file when this one is full.
func (h *History) rotate() error {
	content, err := os.ReadFile(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || bytes.Count(content, []byte{'\n'}) < h.entries {
		return err
	}
	return os.Rename(h.file, h.file+".1")
}

// List returns the entries, the newest first. No file at all is an empty history.
func (h *History) List() (entries []Entry, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range []string{h.file + ".1", h.file} {
		some, err := readEntries(name)
		if err != nil {
			return nil, fmt.Errorf("read the cleanup history: %w", err)
		}
		entries = append(entries, some...)
	}
	newest := make([]Entry, len(entries))
	for i, e := range entries {
		newest[len(entries)-1-i] = e
	}
	return newest, nil
}

func readEntries(name string) (entries []Entry, err error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxEntry)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			// Nothing of ours is so long; its rest is no entry either.
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Task != "" {
			entries = append(entries, e)
		}
		if err != nil {
			return entries, nil
		}
	}
}

// entriesOf makes the entries of a run.
func entriesOf(r Report, t *Task, by By) (entries []Entry) {
	entry := Entry{
		Task: t.Name, Ledger: t.Ledger, Began: r.Began, Ended: r.Began.Add(r.Took), End: r.Ended, WhyEN: r.Why.EN, WhyZH: r.Why.ZH,
		Cutoff: known(r.Plan.Cutoff), By: by,
	}
	if len(r.Tables) == 0 {
		return []Entry{entry}
	}
	for i, table := range r.Tables {
		e := entry
		e.Table, e.Archive, e.Rows, e.Batches = table.Table, table.Archive, table.Gone, table.Batches
		e.Planned = r.Plan.Tables[i].Candidates
		e.Began, e.Ended = table.Began, table.Began.Add(table.Took)
		for reason, d := range table.Throttled {
			if e.Throttled == nil {
				e.Throttled = map[Reason]float64{}
			}
			e.Throttled[reason] = d.Seconds()
		}
		if i < len(r.Tables)-1 { // only the last one can have ended early
			e.End, e.WhyEN, e.WhyZH = Done, "", ""
		}
		entries = append(entries, e)
	}
	return entries
}
