package janitor

import (
	"context"
	"errors"

	"idemscope/internal/archive"
	"idemscope/internal/ledger"
)

// Opener takes the lease of a table, as ledger.Sweeper.Open does.
type Opener func(ctx context.Context, t *ledger.SweepTable) (*ledger.SweepSession, error)

// Plainly is a Task's Open for tables whose rows go for good, or to another table.
func Plainly(open Opener) func(context.Context, *ledger.SweepTable) (Session, error) {
	return func(ctx context.Context, t *ledger.SweepTable) (Session, error) {
		session, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		return session, nil
	}
}

// IntoFiles is a Task's Open for tables whose rows go to files. Of the options,
// table and key are filled in. The files are opened under the lease.
func IntoFiles(open Opener, o archive.Options) func(context.Context, *ledger.SweepTable) (Session, error) {
	return func(ctx context.Context, t *ledger.SweepTable) (Session, error) {
		session, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		own := o
		own.Table, own.Key = t.Name(), session.Key()
		files, err := archive.Open(own)
		if err != nil {
			session.Close()
			return nil, ledger.NewKeeperFault(err)
		}
		if err := session.KeepIn(ctx, files); err != nil {
			session.Close()
			return nil, errors.Join(err, files.Close())
		}
		return session, nil
	}
}
