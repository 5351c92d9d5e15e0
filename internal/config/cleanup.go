package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Account is a user of a server. It is kept as a value: fmt shows what a pointer
// inside another value points to without asking the methods of a Secret.
type Account struct {
	User     string
	Password Secret
}

// Cleanup is the work of the janitor.
type Cleanup struct {
	Tasks []CleanupTask
	// History is the path of the file that keeps what runs did; empty without tasks.
	History string
}

// defaultHistory is the name of that file, beside the configuration.
const defaultHistory = "idemscope-cleanup.jsonl"

// CleanupAction is what happens to an old record.
type CleanupAction string

// The actions.
const (
	CleanupDelete  CleanupAction = "delete"
	CleanupArchive CleanupAction = "archive"
)

// CleanupTask cleans one ledger.
type CleanupTask struct {
	Name string
	// Ledger names what is cleaned.
	Ledger string
	// Retain is for how long after its last change a completed record stays: 1h to 87600h.
	Retain time.Duration
	Action CleanupAction
	// ArchiveTable and ArchiveFiles: for CleanupArchive, one of them is set. Shards of
	// the table are written as for the ledger.
	ArchiveTable string
	ArchiveFiles ArchiveFiles
	// Batch is how many rows one transaction looks at, at most: 100 to 10000.
	Batch int
	// Window is when the schedule may run; its zero value means never.
	Window Window
	// TimeZone is that of the window.
	TimeZone *time.Location
	// Enabled: the service runs the task in its window.
	Enabled bool
	// RunTime and Rows end a run; 0 means without such a limit.
	RunTime time.Duration
	Rows    int
	// StopFile is the path of a file that holds the task up as long as it exists; it may be empty.
	StopFile string
	Throttle Throttle
	Checks   CleanupChecks
}

// ArchiveFiles are files that take rows.
type ArchiveFiles struct {
	// Directory is a path; empty when rows do not go to files.
	Directory string
	// Compression is zstd or gzip.
	Compression string
	// FileMB is the size at which the next file begins, in millions of bytes: 1 to 10000.
	FileMB int
}

// Window is a part of every day, in minutes after midnight. It goes over midnight
// when To is not above From.
type Window struct{ From, To int }

// act reads the credential of a server with which it may be changed; without a name when there is none.
func (s *section) act(help string) Account {
	part := s.section("act")
	if part == nil {
		return Account{}
	}
	defer part.close()
	return Account{
		User:     part.required("user", help),
		Password: part.password(),
	}
}

// cleanup reads the tasks of the janitor.
func (s *section) cleanup(c *Config) (cleanup Cleanup) {
	part := s.optional("cleanup")
	defer part.close()
	tables := map[string]place{}
	part.named("tasks", func(name string, task *section) {
		t := task.cleanupTask(name, c)
		task.judge(t, c, tables)
		cleanup.Tasks = append(cleanup.Tasks, t)
	})
	file := part.history()
	if len(cleanup.Tasks) > 0 {
		cleanup.History = file
	}
	return cleanup
}

// history reads where the history of runs is kept.
func (s *section) history() string {
	part := s.optional("history")
	defer part.close()
	if text := part.text("file"); text != "" {
		return part.filePath(text)
	}
	return s.filePath(defaultHistory)
}

func (s *section) cleanupTask(name string, c *Config) CleanupTask {
	t := CleanupTask{
		Name:     name,
		Ledger:   s.ref("ledger", "ledgers"),
		Action:   CleanupAction(s.word("action", "", string(CleanupDelete), string(CleanupArchive))),
		Batch:    s.whole("batch", 500, 100, 10000),
		Window:   s.window("window"),
		TimeZone: c.TimeZone,
		Enabled:  s.flag("enabled"),
		RunTime:  s.duration("run_time", 0, time.Second, 24*time.Hour),
		Rows:     s.whole("rows", 0, 1, 1<<40),
		Throttle: s.throttle(),
		Checks:   s.checks(),
	}
	if v := s.value("action"); t.Action == "" {
		s.missing(v, "write delete, or archive with archive: {table: NAME} or archive: {directory: PATH}")
	}
	if t.Retain = s.duration("retain", 0, time.Hour, 10*year); t.Retain == 0 {
		s.missing(s.value("retain"), "say for how long completed records stay, such as 168h")
	}
	if archive := s.section("archive"); archive != nil {
		t.ArchiveTable, t.ArchiveFiles = archive.text("table"), archive.files()
		archive.close()
	}
	if s.text("time_zone") != "" {
		t.TimeZone = s.zone("time_zone")
	}
	if text := s.text("stop_file"); text != "" {
		t.StopFile = s.filePath(text)
	}
	return t
}

// files reads where an archive in files is, and how it is written.
func (s *section) files() (f ArchiveFiles) {
	if text := s.text("directory"); text != "" {
		f.Directory = s.filePath(text)
	}
	f.Compression = s.word("compression", "zstd", "zstd", "gzip")
	f.FileMB = s.whole("file_mb", 256, 1, 10_000)
	for _, key := range []string{"compression", "file_mb"} {
		if v := s.value(key); f.Directory == "" && v.node != nil {
			s.problemf(v.at, v.path, "is for files; write directory: PATH beside it, or remove it")
		}
	}
	if f.Directory == "" {
		return ArchiveFiles{}
	}
	return f
}

// judge checks what depends on several keys of a task.
func (s *section) judge(t CleanupTask, c *Config, tables map[string]place) {
	archive, window := s.value("archive"), s.value("window")
	switch {
	case t.Action == CleanupArchive && t.ArchiveTable == "" && t.ArchiveFiles.Directory == "" && !s.reported(archive.path):
		s.problemf(archive.at, s.pathOf("archive"), "is missing; action: archive needs archive: {table: NAME}, or archive: {directory: PATH} for files")
	case t.ArchiveTable != "" && t.ArchiveFiles.Directory != "":
		s.problemf(archive.at, archive.path, "names a table and a directory; rows go to one of them")
	case t.Action == CleanupDelete && (t.ArchiveTable != "" || t.ArchiveFiles.Directory != ""):
		s.problemf(archive.at, archive.path, "has no effect with action: delete; write action: archive, or remove it")
	}
	if t.Enabled && t.Window == (Window{}) && !s.reported(window.path) {
		s.problemf(window.at, s.pathOf("window"), `is missing; enabled: true needs a window, such as "02:00-05:00"`)
	}
	s.deadLetters(t, c)
	i := slices.IndexFunc(c.Ledgers, func(l Ledger) bool { return l.Name == t.Ledger })
	if i < 0 {
		return
	}
	v, l := s.value("ledger"), c.Ledgers[i]
	switch {
	case t.ArchiveTable == "":
	case l.Archive == "" && t.ArchiveTable != l.Table:
		// Look-ups find what the janitor has moved.
		c.Ledgers[i].Archive = t.ArchiveTable
	case l.Archive != "" && l.Archive != t.ArchiveTable:
		s.problemf(archive.at, archive.path, "moves rows to %q, but look-ups search ledgers.%s.archive: %q; write the same table, or leave that key out", t.ArchiveTable, l.Name, l.Archive)
	}
	if l.Preset == "state_machine" || l.Preset == "outbox" {
		s.problemf(v.at, v.path, "the ledger %q has the preset %s, whose tables are never cleaned; remove the task", l.Name, l.Preset)
	}
	if first, twice := tables[l.Name]; twice {
		s.problemf(v.at, v.path, "the ledger %q already has a task in line %d; keep one of them", l.Name, first.line)
		return
	}
	tables[l.Name] = v.at
}

var windowShape = regexp.MustCompile(`^(\d\d):(\d\d)-(\d\d):(\d\d)$`)

// window reads a part of the day; its zero value when it is left out or no window.
func (s *section) window(key string) Window {
	text := s.text(key)
	if text == "" {
		return Window{}
	}
	v := s.value(key)
	w, ok := parseWindow(text)
	switch {
	case !ok:
		s.problemf(v.at, v.path, `%q is no window; write two times of the day in quotes, such as "02:00-05:00" or "23:00-04:00"`, text)
		return Window{}
	case w.From == w.To:
		s.problemf(v.at, v.path, `begins and ends at the same time; write two times, such as "02:00-05:00"`)
		return Window{}
	}
	return w
}

func parseWindow(text string) (w Window, ok bool) {
	m := windowShape.FindStringSubmatch(text)
	if m == nil {
		return Window{}, false
	}
	minutes := func(hour, minute string) int {
		h, _ := strconv.Atoi(hour)
		n, _ := strconv.Atoi(minute)
		if h > 23 || n > 59 {
			ok = false
		}
		return h*60 + n
	}
	ok = true
	w = Window{From: minutes(m[1], m[2]), To: minutes(m[3], m[4])}
	return w, ok
}

// String writes the window as the configuration does; empty when there is none.
func (w Window) String() string {
	if w == (Window{}) {
		return ""
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.To/60, w.To%60)
}

func (c Cleanup) redacted() *group {
	tasks := &group{}
	for _, t := range c.Tasks {
		tasks.part(t.Name, t.redacted())
	}
	g := &group{}
	g.part("tasks", tasks)
	history := &group{}
	history.text("file", c.History)
	g.part("history", history)
	return g
}

func (t CleanupTask) redacted() *group {
	g, archive := &group{}, &group{}
	g.text("ledger", t.Ledger)
	g.duration("retain", t.Retain)
	g.text("action", string(t.Action))
	archive.text("table", t.ArchiveTable)
	if f := t.ArchiveFiles; f.Directory != "" {
		archive.text("directory", f.Directory)
		archive.text("compression", f.Compression)
		archive.add("file_mb", f.FileMB)
	}
	g.part("archive", archive)
	g.add("batch", t.Batch)
	g.text("window", t.Window.String())
	g.text("time_zone", t.TimeZone.String())
	g.add("enabled", t.Enabled)
	g.duration("run_time", t.RunTime)
	if t.Rows > 0 {
		g.add("rows", t.Rows)
	}
	g.text("stop_file", t.StopFile)
	g.part("throttle", t.Throttle.redacted())
	t.Checks.redacted(g)
	return g
}

func (a Account) redacted() *group {
	g := &group{}
	g.text("user", a.User)
	g.text("password", a.Password.String())
	return g
}
