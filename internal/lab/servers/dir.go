package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockName is the file whose lock says that the directory is in use. The kernel frees the lock when its owner dies.
const lockName = "idemscope.lock"

// maxTempRoot keeps the path of a Unix socket in a work directory under the system's limit of 104 bytes.
const maxTempRoot = 70

// workDir is the temporary directory of one server.
type workDir struct {
	path string
	lock *os.File
}

// newWorkDir removes the directories of processes that died, and makes a new one that only this user can enter.
func newWorkDir(kind string) (*workDir, error) {
	root := os.TempDir()
	if len(root) > maxTempRoot {
		root = "/tmp"
	}
	removeAbandoned(root)
	path, err := os.MkdirTemp(root, "idemscope-"+kind+"-")
	if err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("work directory: %w", err), os.RemoveAll(path))
	}
	return &workDir{path: path, lock: lock}, nil
}

// lockDir gives the lock file its name only once it is locked, so that nobody sees it unlocked while we live.
func lockDir(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName+".new"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// file is the path of name in the directory.
func (d *workDir) file(name string) string {
	return filepath.Join(d.path, name)
}

// remove deletes the directory. Helpers of a killed server may write for a moment longer, hence the second tries.
func (d *workDir) remove() error {
	err := os.RemoveAll(d.path)
	for deadline := time.Now().Add(2 * time.Second); err != nil && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
		err = os.RemoveAll(d.path)
	}
	return errors.Join(err, d.lock.Close())
}

// removeAbandoned removes the work directories in root whose lock nobody holds. It is best effort: what it cannot
// remove belongs to somebody else or is in use.
func removeAbandoned(root string) {
	locks, err := filepath.Glob(filepath.Join(root, "idemscope-*", lockName))
	if err != nil {
		return
	}
	for _, path := range locks {
		lock, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if ownedByUs(lock) && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}

// ownedByUs guards against a file that another user placed in the shared temporary directory.
func ownedByUs(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
