package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// lockPatience is how long an entry waits for another process that is writing one.
	lockPatience = 3 * time.Second
	lockEvery    = 5 * time.Millisecond
)

// Log is the audit file. Several processes may write to it at once. It is opened
// anew for each entry, so that a file that was moved away is followed by a new
// one. It is safe for concurrent use.
type Log struct {
	path string

	mu     sync.Mutex
	recent *recent // what Tell read last; nil before the first time
}

// Open names the file. Nothing is read or made before the first entry.
func Open(path string) (*Log, error) {
	if path == "" {
		return nil, errors.New("audit: a file is needed")
	}
	return &Log{path: path}, nil
}

// Path of the file.
func (l *Log) Path() string { return l.path }

// Append writes one entry, and returns when it is on the disk. An entry without a
// time gets that of now. A line that a crash left torn is closed first, so that
// it never swallows this one.
func (l *Log) Append(ctx context.Context, e Entry) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	text, err := encode(e)
	if err == nil {
		err = l.write(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("write to the audit file %s: %w", l.path, err)
	}
	return nil
}

func (l *Log) write(ctx context.Context, text []byte) (err error) {
	f, fresh, err := l.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := lock(ctx, f)
	if err != nil {
		return fmt.Errorf("wait for another writer: %w", err)
	}
	defer unlock()
	torn, err := endsTorn(f)
	if err != nil {
		return err
	}
	if torn {
		text = append([]byte("\n"), text...)
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if fresh {
		return syncFolder(filepath.Dir(l.path))
	}
	return nil
}

// open opens the file for appending. fresh: it was not there. Whatever is no plain
// file would keep nothing.
func (l *Log) open() (f *os.File, fresh bool, err error) {
	if _, err := os.Stat(l.path); errors.Is(err, os.ErrNotExist) {
		fresh = true
	}
	f, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, fresh, nil
}

// endsTorn reports that the last line has no end.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] != '\n', nil
}

// syncFolder makes a new file's name survive a crash.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
