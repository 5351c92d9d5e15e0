package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"idemscope/internal/archive"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/janitor"
)

// cleanupStatement is how long the server lets one reading statement of the
// janitor run: counting may take longer than a look-up.
const cleanupStatement = 10 * time.Second

// gateStatement is how long the server lets the query of a throttle run.
const gateStatement = 2 * time.Second

// openTasks sets up the tasks of the janitor, each with connections of its own:
// a cleanup must not take those of the console and the exporter.
func (s *stores) openTasks(c *config.Config) error {
	for _, t := range c.Cleanup.Tasks {
		path := "cleanup.tasks." + t.Name
		task, err := s.openTask(c, t)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.At(path), path, err)
		}
		s.tasks = append(s.tasks, task)
	}
	return nil
}

func (s *stores) openTask(c *config.Config, t config.CleanupTask) (janitor.Task, error) {
	task := janitor.Task{
		Name: t.Name, Ledger: t.Ledger, Retain: t.Retain, Batch: t.Batch,
		Window: janitor.Window{From: t.Window.From, To: t.Window.To, Zone: t.TimeZone}, Enabled: t.Enabled,
		RunTime: t.RunTime, Rows: int64(t.Rows), StopFile: t.StopFile,
		Limits: janitor.Limits{
			MaxReplicaLag: t.Throttle.MaxReplicaLag, MaxThreadsRunning: t.Throttle.MaxThreadsRunning, MaxHistoryLength: t.Throttle.MaxHistoryLength,
			Duty: t.Throttle.Duty, Critical: janitor.Critical(t.Throttle.Critical),
		},
		AllowDeadLetters: t.Checks.AllowDeadLetters, ExpectSchema: t.Checks.ExpectSchema, MaxGrowth: t.Checks.MaxGrowth,
		Brokers: as[janitor.Broker](s.brokers),
	}
	for _, f := range s.catalog.Flows() {
		if f.Ledger == t.Ledger {
			task.Flows = append(task.Flows, f)
		}
	}
	for _, name := range t.Throttle.Replicas {
		server, err := s.openServer(cleanupServer(c, name))
		if err != nil {
			return task, err
		}
		task.Limits.Replicas = append(task.Limits.Replicas, server)
	}
	if err := s.openGates(c, t, &task.Limits); err != nil {
		return task, err
	}
	return task, s.openTables(c, t, &task)
}

// openGates sets up the checks that the operator wrote: a query, with the user
// that reads, and a URL.
func (s *stores) openGates(c *config.Config, t config.CleanupTask, limits *janitor.Limits) (err error) {
	if q := t.Throttle.Query; q.SQL != "" {
		of := c.Ledgers[slices.IndexFunc(c.Ledgers, func(l config.Ledger) bool { return l.Name == t.Ledger })]
		options := cleanupServer(c, of.MySQL)
		options.MaxConns, options.StatementLimit = 1, gateStatement
		server, err := s.openServer(options)
		if err != nil {
			return err
		}
		limits.Query = &janitor.Query{Max: float64(q.Max), Number: func(ctx context.Context) (float64, error) { return server.Number(ctx, q.SQL) }}
	}
	if address := t.Throttle.HTTP; address != "" {
		if limits.HTTP, err = janitor.NewGate(address.Reveal()); err != nil {
			return fmt.Errorf("throttle.http: %w", err)
		}
		s.stops = append(s.stops, limits.HTTP.Close)
	}
	return nil
}

// openTables connects the task to its ledger. Without a user that may delete it
// can still be planned.
func (s *stores) openTables(c *config.Config, t config.CleanupTask, task *janitor.Task) error {
	of := c.Ledgers[slices.IndexFunc(c.Ledgers, func(l config.Ledger) bool { return l.Name == t.Ledger })]
	options := cleanupServer(c, of.MySQL)
	act := account(c, of.MySQL)
	if act.User != "" {
		options.User, options.Password = act.User, act.Password.Reveal()
	}
	server, err := s.openServer(options)
	if err != nil {
		return err
	}
	l, err := ledger.New(ledger.Options{Name: of.Name, Server: server, Table: of.Table, Mapping: s.ledgers[of.Name].Mapping()})
	if err != nil {
		return err
	}
	if task.Tables, err = l.SweepTables(t.ArchiveTable); err != nil {
		return fmt.Errorf("archive.%w", err)
	}
	for _, table := range task.Tables {
		table.IntoFiles(t.ArchiveFiles.Directory)
	}
	if act.User == "" {
		return nil
	}
	sweeper, err := ledger.NewSweeper(options)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, sweeper.Close)
	task.Open = janitor.Plainly(sweeper.Open)
	if f := t.ArchiveFiles; f.Directory != "" {
		task.Open = janitor.IntoFiles(sweeper.Open, archive.Options{Directory: f.Directory, Compression: archive.Compression(f.Compression), MaxBytes: int64(f.FileMB) * 1e6})
	}
	return nil
}

// openServer opens a server that is closed with the stores.
func (s *stores) openServer(o ledger.ServerOptions) (*ledger.Server, error) {
	server, err := ledger.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, server.Close)
	return server, nil
}

// cleanupServer describes a configured server, with few connections.
func cleanupServer(c *config.Config, name string) ledger.ServerOptions {
	m := c.MySQL[slices.IndexFunc(c.MySQL, func(m config.MySQL) bool { return m.Name == name })]
	return ledger.ServerOptions{
		Name: m.Name, Address: m.Address, Socket: m.Socket, Database: m.Database,
		User: m.User, Password: m.Password.Reveal(), TLS: m.TLS.Client(),
		Zone: m.TimeZone, Replica: m.Replica, MaxConns: 2, StatementLimit: cleanupStatement,
	}
}

// account is the user with which a server may be changed; without a name when there is none.
func account(c *config.Config, name string) config.Account {
	return c.MySQL[slices.IndexFunc(c.MySQL, func(m config.MySQL) bool { return m.Name == name })].Act
}

// JanitorOptions describe one plan or run from the command line.
type JanitorOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Task is one task; empty means all.
	Task string
	// Execute changes tables; without it, the plan is printed.
	Execute bool
	// AcceptSize lets a run begin that is implausibly large against the last ones.
	AcceptSize bool
	// Exact counts every row instead of sampling.
	Exact bool
	// JSON prints what the API gives.
	JSON bool
	// Terminal: a person looks at Out, so a run shows its progress there. Else it
	// is logged.
	Terminal bool
	// Language of the sentences.
	Language flow.Language
	// Logger is mandatory.
	Logger *slog.Logger
	// Out receives the answer. Mandatory.
	Out io.Writer
}

// cleanupHistory is where runs are kept; nil without a task.
func cleanupHistory(c *config.Config) *janitor.History {
	if c.Cleanup.History == "" {
		return nil
	}
	return janitor.NewHistory(c.Cleanup.History)
}

// Janitor plans or runs cleanup tasks and returns the exit code: 0 fine, 1 only a
// part was done, 3 cannot tell, 4 refused. Errors are usage or configuration:
// exit code 2.
func Janitor(ctx context.Context, o JanitorOptions) (exit int, err error) {
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	j, err := janitor.New(janitor.Options{Tasks: s.tasks, Metrics: janitor.NewMetrics(), Logger: o.Logger, History: cleanupHistory(c), AcceptSize: o.AcceptSize})
	if err != nil {
		return 0, err
	}
	names, err := o.tasks(j.Tasks())
	if err != nil {
		return 0, err
	}
	if o.Execute {
		return o.run(ctx, j, names)
	}
	return o.plan(ctx, j, names, c.TimeZone)
}

// tasks are the names that are asked for.
func (o JanitorOptions) tasks(all []string) ([]string, error) {
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s has no cleanup task; add one under cleanup.tasks, as examples/idemscope.yaml shows", o.Config)
	case o.Task == "":
		return all, nil
	case !slices.Contains(all, o.Task):
		return nil, fmt.Errorf("there is no cleanup task %q; known tasks: %q", o.Task, all)
	}
	return []string{o.Task}, nil
}

func (o JanitorOptions) plan(ctx context.Context, j *janitor.Janitor, names []string, zone *time.Location) (exit int, err error) {
	plans := []janitor.PlanJSON{}
	for _, name := range names {
		p, err := j.Plan(ctx, name, o.Exact)
		if err != nil {
			return 0, err
		}
		exit = max(exit, p.Exit())
		plans = append(plans, p.JSON(o.Language))
		if !o.JSON {
			if err := p.WriteText(o.Out, o.Language, zone); err != nil {
				return 0, err
			}
		}
	}
	if o.JSON {
		return exit, printJSON(o.Out, map[string]any{"tasks": plans})
	}
	return exit, nil
}

// run sweeps task after task. One that is refused does not keep the others from running.
func (o JanitorOptions) run(ctx context.Context, j *janitor.Janitor, names []string) (exit int, err error) {
	reports := []janitor.ReportJSON{}
	for _, name := range names {
		stop := o.follow(j, name)
		r, err := j.Sweep(ctx, name, false)
		stop()
		if err != nil {
			return 0, err
		}
		exit = max(exit, r.Exit())
		reports = append(reports, r.JSON(o.Language))
		if !o.JSON {
			if err := r.WriteText(o.Out, o.Language); err != nil {
				return 0, err
			}
		}
	}
	if o.JSON {
		return exit, printJSON(o.Out, map[string]any{"tasks": reports})
	}
	return exit, nil
}
