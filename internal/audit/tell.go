package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"idemscope/internal/flow"
)

const (
	// toldBytes is how much of the file's end a look-up knows, in bytes: thousands of actions.
	toldBytes = 4 << 20
	// toldEvents is how many actions of one key are told; of more, the latest.
	toldEvents = 50
)

// recent is the end of the file by keys.
type recent struct {
	info    os.FileInfo
	entries map[flow.Place][]Entry // the latest first
	// since is the time of the oldest entry that was read.
	since time.Time
	// whole: the file was read to its beginning.
	whole bool
	bad   int
}

// Tell says what people tried to change about a key, by the last 4 MiB of the
// file. It never fails: what goes wrong is the account's state. The file is read
// again only when it has changed.
func (l *Log) Tell(ctx context.Context, f flow.Flow, k flow.Key) *flow.Account {
	began := time.Now()
	r, err := l.latest(ctx)
	a := &flow.Account{Observation: flow.Observation{Source: "audit file " + l.path, ReadAt: time.Now()}}
	a.Took = a.ReadAt.Sub(began)
	if err != nil {
		a.State, a.Reason = flow.Error, flow.T("the audit file cannot be read: %s", "无法读取审计文件：%s", flow.Visible(cause(err)))
		return a
	}
	a.Events, a.Cut = told(r.entries[flow.Place{Flow: f.Name, Key: k}])
	a.Since = r.since
	switch {
	case len(a.Events) > 0:
		a.State = flow.Found
	case !r.whole:
		a.State, a.Reason = flow.Unknown, flow.T("only the latest entries of the audit file were read, back to %s", "只读取了审计文件中最近的条目，最早到 %s", r.since.UTC().Format(time.RFC3339))
	default:
		a.State = flow.Absent
	}
	a.Coverage = r.coverage()
	return a
}

func (r *recent) coverage() (texts []flow.Text) {
	if r.whole {
		texts = append(texts, flow.T("the whole audit file was read; what was done by other means does not stand there", "已读取整个审计文件；以其他方式做的更改不在其中"))
	} else {
		texts = append(texts, flow.T("only the last %d MiB of the audit file were read", "只读取了审计文件的最后 %d MiB", toldBytes>>20))
	}
	if r.bad > 0 {
		texts = append(texts, flow.T("%d lines of the audit file are no entries", "审计文件中有 %d 行不是审计条目", r.bad))
	}
	return texts
}

// latest reads the end of the file, unless it is known already.
func (l *Log) latest(ctx context.Context) (*recent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		l.recent = nil
		return &recent{whole: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if l.recent != nil && os.SameFile(info, l.recent.info) && info.Size() == l.recent.info.Size() && info.ModTime().Equal(l.recent.info.ModTime()) {
		return l.recent, nil
	}
	r, err := readRecent(ctx, f, info)
	if err != nil {
		return nil, err
	}
	l.recent = r
	return r, nil
}

func readRecent(ctx context.Context, f *os.File, info os.FileInfo) (*recent, error) {
	r := &recent{info: info, entries: map[flow.Place][]Entry{}}
	q := Query{Limit: MaxEntries}
	for end := info.Size(); ; {
		page, err := q.read(ctx, f, end, toldBytes-(info.Size()-end))
		if err != nil {
			return nil, err
		}
		r.bad += page.Bad
		if !page.Since.IsZero() {
			r.since = page.Since
		}
		for _, e := range page.Entries {
			if e.Place != (flow.Place{}) {
				r.entries[e.Place] = append(r.entries[e.Place], e)
			}
		}
		if page.Next == "" {
			r.whole = !page.Cut
			return r, nil
		}
		if _, err := fmt.Sscan(page.Next, &end); err != nil {
			return nil, err
		}
		if info.Size()-end >= toldBytes {
			return r, nil
		}
	}
}

// told turns the entries of a key, the latest first, into events, the latest last.
// A beginning counts only when no end of its attempt is known.
func told(entries []Entry) (events []flow.Event, cut bool) {
	ended := map[string]bool{}
	for _, e := range entries {
		if ended[e.Attempt] && e.Outcome == Begun {
			continue
		}
		ended[e.Attempt] = true
		if len(events) == toldEvents {
			cut = true
			break
		}
		events = append(events, flow.Event{
			Kind: flow.Acted, At: e.At, Layer: layerOf(e.Action), Source: "audit", Certainty: flow.Observed,
			Place: e.Action, Outcome: string(e.Outcome), Worker: e.Who,
		})
	}
	slices.Reverse(events)
	return events, cut
}

// Of lists the entries of a key among the last 4 MiB of the file, the latest first.
func (l *Log) Of(ctx context.Context, p flow.Place) ([]Entry, error) {
	r, err := l.latest(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the audit file %s: %w", l.path, err)
	}
	return slices.Clone(r.entries[p]), nil
}

// layerOf is the layer that an action changes.
func layerOf(action string) flow.Layer {
	switch action {
	case "release-lock", "clear-marker":
		return flow.LayerRedis
	case "reset-record":
		return flow.LayerMySQL
	case "replay":
		return flow.LayerBroker
	}
	return flow.LayerNone
}

// cause spares the path, which stands beside it.
func cause(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
