package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"idemscope/internal/archive"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/janitor"
)

// RestoreOptions describe the return of archived rows.
type RestoreOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Task wrote the files; empty when there is only one.
	Task string
	// Files are paths of data files. Mandatory.
	Files []string
	// Execute changes the table; without it, the files are read and compared.
	Execute bool
	// Language of the sentences.
	Language flow.Language
	// Out receives the report. Mandatory.
	Out io.Writer
}

// Restore puts rows of archive files back into their table and returns the exit
// code: 0 all are there, 1 only a part is, 4 refused. Errors are usage,
// configuration, or a file that cannot be read: exit code 2.
func Restore(ctx context.Context, o RestoreOptions) (exit int, err error) {
	_, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t, err := o.task(s.tasks)
	if err != nil {
		return 0, err
	}
	var files []*archive.File
	for _, path := range o.Files {
		f, err := archive.OpenFile(path)
		if err != nil {
			return 0, err
		}
		files = append(files, f)
	}
	say := func(text flow.Text) { fmt.Fprintln(o.Out, text.In(o.Language)) }
	for i, f := range files {
		if exit, err := restoreFile(ctx, t, f, o.Execute, say); err != nil || exit != 0 {
			if i > 0 && exit == 4 {
				exit = 1
			}
			return exit, err
		}
	}
	if !o.Execute {
		say(flow.T("Nothing was changed. To put the rows back, add --execute.", "没有做任何更改。要恢复这些行，请加 --execute。"))
		return 0, nil
	}
	say(flow.T("These rows are older than the retention: the next run of the task %s lets them go again. Take it out of its schedule for as long as they are needed.",
		"这些行早于保留期：任务 %s 下次运行会再次清理它们。需要保留期间请停用其计划。", t.Name))
	return 0, nil
}

func (o RestoreOptions) task(tasks []janitor.Task) (*janitor.Task, error) {
	i := slices.IndexFunc(tasks, func(t janitor.Task) bool { return t.Name == o.Task })
	if o.Task == "" && len(tasks) == 1 {
		i = 0
	}
	if i < 0 {
		return nil, fmt.Errorf("name the cleanup task that wrote the files with --task; %q is none of the %d configured ones", o.Task, len(tasks))
	}
	if tasks[i].Open == nil {
		return nil, fmt.Errorf("the task %s has no user that may write: set mysql.*.act, with INSERT on the table", tasks[i].Name)
	}
	return &tasks[i], nil
}

// restoreFile puts back one file, batch by batch, under the lease of its table.
func restoreFile(ctx context.Context, t *janitor.Task, f *archive.File, execute bool, say func(flow.Text)) (exit int, err error) {
	i := slices.IndexFunc(t.Tables, func(table *ledger.SweepTable) bool { return table.Name() == f.Table })
	if i < 0 {
		return 0, fmt.Errorf("%s holds rows of %s, which the task %s does not clean", f.Path, f.Table, t.Name)
	}
	opened, err := t.Open(ctx, t.Tables[i])
	if err != nil {
		say(ledger.Explain(err))
		return 4, nil
	}
	defer opened.Close()
	session := opened.(*ledger.SweepSession)
	var total ledger.Restored
	err = f.Each(func(rows []archive.Row) error {
		r, err := session.Restore(ctx, f.Columns, rows, execute)
		total.Inserted, total.There = total.Inserted+r.Inserted, total.There+r.There
		return err
	})
	done := flow.T("%s: %d rows are back in %s, %d were there already", "%s：已恢复 %d 行到 %s，%d 行原本就在表中", f.Path, total.Inserted, f.Table, total.There)
	if !execute {
		done = flow.T("%s: %d rows would come back to %s, %d are there already", "%s：将恢复 %d 行到 %s，%d 行已在表中", f.Path, total.Inserted, f.Table, total.There)
	}
	say(done)
	if err == nil {
		return 0, nil
	}
	say(flow.T("stopped: %s", "已停止：%s", ledger.Explain(err)))
	if execute && total.Inserted > 0 {
		return 1, nil
	}
	return 4, nil
}
