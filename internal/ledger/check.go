package ledger

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"idemscope/internal/flow"
)

// Severity says how much a problem of a table matters.
type Severity string

const (
	// SeverityError: look-ups fail, or duplicates are not stopped.
	SeverityError Severity = "error"
	// SeverityWarning: something works less well, or ids can be confused.
	SeverityWarning Severity = "warning"
)

// Problem is one fault that Check found.
type Problem struct {
	Severity Severity
	// Code is stable: missing_table, missing_column, optional_column, no_unique_key,
	// nullable_unique_key, prefix_unique_key, no_lookup_index, no_integer_key,
	// no_time_column, time_column_type, folds_case, ignores_padding, utf8mb3,
	// not_transactional, unreadable.
	Code string
	// Text names the tables and says what is wrong.
	Text flow.Text
	// Wider: there is a unique key over the key columns, and over others as well.
	// For no_unique_key only.
	Wider bool
	// SQL mends the first of the tables; Survey sets it where a statement can.
	// It is for people: nothing here runs it.
	SQL string
}

// Check reads the schema of every shard anew and reports what is wrong with it.
// It reads information_schema only, never the tables.
func (l *Ledger) Check(ctx context.Context) []Problem {
	found := make([][]problem, len(l.shards))
	probe := &collations{server: l.server, known: map[string]folding{}}
	l.eachShard(func(i int, s *Shard) { found[i] = s.check(ctx, probe) })
	return l.group(found)
}

func (s *Shard) check(ctx context.Context, probe *collations) []problem {
	sch, err := s.server.readSchema(ctx, s.table)
	if err != nil {
		return []problem{{severity: SeverityError, code: "unreadable", text: Explain(err)}}
	}
	layout := resolve(s.mapping, sch, s.server.zone)
	layout.checkDeeper(ctx, probe)
	return layout.problems
}

// checkDeeper adds what resolve, which every look-up runs, does not look at.
func (l *layout) checkDeeper(ctx context.Context, probe *collations) {
	if l.unusable() != nil {
		return
	}
	if err := l.checkCollations(ctx, probe); err != nil {
		l.report(SeverityError, "unreadable", Explain(err))
	}
	l.checkCharsets()
	l.checkEngine()
}

// group makes one Problem of the same fault in several shards.
func (l *Ledger) group(found [][]problem) []Problem {
	var order []problem
	tables := map[problem][]string{}
	for i, problems := range found {
		for _, p := range problems {
			if tables[p] == nil {
				order = append(order, p)
			}
			tables[p] = append(tables[p], l.shards[i].Name())
		}
	}
	var out []Problem
	for _, p := range order {
		names := tables[p]
		where := flow.T(names[0], names[0])
		if len(names) > 1 {
			where = flow.T("%[1]s and %[2]d more shards", "%[1]s 等 %[3]d 个分表", names[0], len(names)-1, len(names))
		}
		out = append(out, Problem{Severity: p.severity, Code: p.code, Text: flow.T("%s: %s", "%s：%s", where, p.text), Wider: p.wider})
	}
	return out
}

// folding is what a collation takes for equal.
type folding struct {
	// letterCase: "a" equals "A". padding: "a" equals "a ".
	letterCase, padding bool
}

// collations asks the server how collations compare, each once. Their names
// tell it only by half, and differently on each family.
type collations struct {
	server *Server
	mu     sync.Mutex
	known  map[string]folding
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

func (p *collations) of(ctx context.Context, c *column) (folding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.known[c.collation]; ok {
		return f, nil
	}
	if !plainName.MatchString(c.charset) || !plainName.MatchString(c.collation) {
		return folding{}, fmt.Errorf("collation %q of %q is no plain name", c.collation, c.charset)
	}
	side := func(text string) string {
		return fmt.Sprintf("CONVERT('%s' USING %s) COLLATE %s", text, c.charset, c.collation)
	}
	q := fmt.Sprintf("SELECT %s = %s, %s = %s", side("a"), side("A"), side("a"), side("a "))
	var f folding
	err := p.server.scan(ctx, statement{text: q}, []any{&f.letterCase, &f.padding}, func() {})
	if err != nil {
		return folding{}, fmt.Errorf("ask how collation %s compares: %w", c.collation, err)
	}
	p.known[c.collation] = f
	return f, nil
}

// keyColumns are the columns of a whole key, the type first.
func (l *layout) keyColumns() []*column {
	if l.bizType == nil {
		return l.id
	}
	return append([]*column{l.bizType}, l.id...)
}

func (l *layout) checkCollations(ctx context.Context, probe *collations) error {
	for _, c := range l.keyColumns() {
		if !c.text() {
			continue
		}
		f, err := probe.of(ctx, c)
		if err != nil {
			return err
		}
		if f.letterCase {
			l.reportOn(c, SeverityWarning, "folds_case", flow.T(
				"column %s (%s) takes upper and lower case for equal: one id can answer for another",
				"列 %s（%s）不区分大小写：一个 ID 可能代替另一个应答", c.name, c.collation))
		}
		// CHAR loses trailing blanks when it is stored, whatever the collation.
		if f.padding || strings.EqualFold(c.kind, "char") {
			l.reportOn(c, SeverityWarning, "ignores_padding", flow.T(
				"column %s (%s) ignores blanks at the end: one id can answer for another",
				"列 %s（%s）忽略末尾空格：一个 ID 可能代替另一个应答", c.name, c.collation))
		}
	}
	return nil
}

// checkCharsets looks for columns that cannot keep every character of UTF-8.
func (l *layout) checkCharsets() {
	for _, c := range l.keyColumns() {
		if c.charset == "utf8" || c.charset == "utf8mb3" {
			l.reportOn(c, SeverityWarning, "utf8mb3", flow.T(
				"column %s (%s) keeps characters of three bytes at most: an id with an emoji cannot be written",
				"列 %s（%s）最多保存三字节字符：含表情符号的 ID 无法写入", c.name, c.charset))
		}
	}
}

// rollsBack has the engines that undo what an aborted transaction wrote.
var rollsBack = map[string]bool{"innodb": true, "ndbcluster": true, "rocksdb": true, "tokudb": true}

func (l *layout) checkEngine() {
	if engine := l.schema.engine; engine != "" && !rollsBack[engine] {
		l.report(SeverityError, "not_transactional", flow.T(
			"the storage engine %s has no transactions", "存储引擎 %s 不支持事务", engine))
	}
}
