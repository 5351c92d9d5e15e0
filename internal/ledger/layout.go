package ledger

import (
	"errors"
	"slices"
	"time"

	"idemscope/internal/flow"
)

// layout is a mapping applied to the schema of one table.
type layout struct {
	mapping Mapping
	schema  *schema
	zone    *time.Location

	// bizType is nil when the type is a constant, status when presence means
	// completed, the others when they are not mapped.
	bizType, status, created, updated, completed, result, attempts, worker *column
	// id are the columns that make up a biz_id.
	id []*column
	// key is the integer that rows are followed by, through keyIndex; nil when there is none.
	key      *column
	keyIndex string
	// archived says when the row was moved to the archive; nil when no column does.
	archived *column
	// lookup is the index through which one key is found; nil when there is none.
	lookup *index
	// idAlone: the unique key holds the biz_id without the type, so a row of
	// another type answers for this one too.
	idAlone bool

	problems []problem
}

// problem is one fault of one table.
type problem struct {
	severity Severity
	code     string
	// text does not name the table.
	text flow.Text
	// column and index are what it is about; mostly empty.
	column, index string
	// wider is that of Problem.
	wider bool
}

// Errors for tables that lack what a reading needs. Explain words what is missing.
var (
	ErrNoTail  = errors.New("no integer key to follow rows by")
	ErrNoIndex = errors.New("no index that this reading could use")
)

// tableError says why a table cannot be read in some way.
type tableError struct {
	table string
	text  flow.Text
	// kind is ErrNoTail, ErrNoIndex or nil.
	kind error
}

func (e *tableError) Error() string   { return e.table + ": " + e.text.EN }
func (e *tableError) Text() flow.Text { return flow.T("%s: %s", "%s：%s", e.table, e.text) }
func (e *tableError) Unwrap() error   { return e.kind }

// resolve looks up every mapped column. The result may be unusable: see unusable.
func resolve(m Mapping, s *schema, zone *time.Location) *layout {
	l := &layout{mapping: m, schema: s, zone: zone}
	if len(s.columns) == 0 {
		l.report(SeverityError, "missing_table", flow.T(
			"there is no such table, or this user may not see it", "表不存在，或该用户无权查看"))
		return l
	}
	l.bizType, l.status = l.find(roleBizType), l.find(roleStatus)
	l.created, l.updated, l.completed = l.find(roleCreated), l.find(roleUpdated), l.find(roleCompleted)
	l.result, l.attempts, l.worker = l.find(roleResult), l.find(roleAttempts), l.find(roleWorker)
	if c := s.column(archivedColumn); m.archive && c != nil && c.time() {
		l.archived = c
	}
	for _, name := range m.idColumns() {
		if c := l.need(roleBizID, name); c != nil {
			l.id = append(l.id, c)
		}
	}
	l.resolveKey()
	if l.unusable() != nil {
		return l
	}
	l.resolveUnique()
	l.resolveLookup()
	l.checkTimes()
	return l
}

// idColumns lists the columns of a biz_id.
func (m Mapping) idColumns() []string {
	if m.id.IsZero() {
		return []string{m.columns[roleBizID]}
	}
	return m.id.Names()
}

func (l *layout) report(severity Severity, code string, text flow.Text) {
	l.problems = append(l.problems, problem{severity: severity, code: code, text: text})
}

// reportOn is report about one column.
func (l *layout) reportOn(c *column, severity Severity, code string, text flow.Text) {
	l.problems = append(l.problems, problem{severity: severity, code: code, text: text, column: c.name})
}

// find returns the column of a role, or nil when it is not mapped or missing.
func (l *layout) find(role string) *column {
	name := l.mapping.columns[role]
	if name == "" {
		return nil
	}
	return l.need(role, name)
}

func (l *layout) need(role, name string) *column {
	c := l.schema.column(name)
	switch {
	case c != nil:
	case slices.Contains(l.mapping.optional, role):
		l.report(SeverityWarning, "optional_column", flow.T(
			"the preset supposes a column %[1]s (%[2]s), which is not there; the table is read without it. Name the column in columns.%[2]s, or set that to \"-\"",
			"预设假定有列 %[1]s（%[2]s），但表中没有；读取时将忽略它。请在 columns.%[2]s 中写明列名，或设为 \"-\"", name, role))
	default:
		l.report(SeverityError, "missing_column", flow.T(
			"there is no column %s (%s), or this user may not see it", "没有列 %s（%s），或该用户无权查看", name, role))
	}
	return c
}

// unusable returns why the table cannot be read at all, or nil.
func (l *layout) unusable() error {
	for _, p := range l.problems {
		if p.code == "missing_table" || p.code == "missing_column" {
			return l.lacks(nil, p.text)
		}
	}
	return nil
}

func (l *layout) lacks(kind error, text flow.Text) error {
	return &tableError{table: l.schema.table.String(), text: text, kind: kind}
}

func (l *layout) checkTimes() {
	stamps := 0
	for _, c := range []*column{l.created, l.updated, l.completed} {
		switch {
		case c == nil:
		case c.time():
			stamps++
		default:
			l.report(SeverityWarning, "time_column_type", flow.T(
				"time column %s is of type %s; DATETIME, TIMESTAMP and integers since 1970 are read", "时间列 %s 的类型是 %s；支持 DATETIME、TIMESTAMP 和自 1970 年起的整数", c.name, c.kind))
		}
	}
	if stamps == 0 {
		l.report(SeverityWarning, "no_time_column", flow.T(
			"no time column: the age of a record cannot be told", "没有时间列：无法得知记录的时长"))
	}
}
