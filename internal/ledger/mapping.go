package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"idemscope/internal/flow"
)

// Roles of columns, as the configuration names them.
const (
	roleID        = "id"
	roleBizType   = "biz_type"
	roleBizID     = "biz_id"
	roleStatus    = "status"
	roleCreated   = "created"
	roleUpdated   = "updated"
	roleCompleted = "completed"
	roleResult    = "result"
	roleAttempts  = "attempts"
	roleWorker    = "worker"
)

var roles = []string{roleID, roleBizType, roleBizID, roleStatus, roleCreated, roleUpdated, roleCompleted, roleResult, roleAttempts, roleWorker}

var phases = []flow.Phase{flow.NotStarted, flow.Processing, flow.Completed, flow.Failed}

// present is the status of a row in a table where presence alone means completed.
const present = "present"

// unmap is what the configuration writes to take a preset's column away; the
// empty word does the same.
const unmap = "-"

// Mapping says what the columns of a table mean. It is made by NewMapping.
type Mapping struct {
	preset string
	// bizType is the constant type; empty when a column holds it.
	bizType string
	// id takes a biz_id apart into its columns.
	id flow.Template
	// columns has the mapped roles, except biz_id.
	columns map[string]string
	// optional are roles whose column a preset only supposes.
	optional []string
	words    map[string]flow.Phase
	// archive: the table holds rows that the cleanup moved there.
	archive bool
}

// MappingSpec is what a configuration says about a table. Every field may be empty.
type MappingSpec struct {
	// BizType is the one type of a table that holds no other.
	BizType string
	// BizID is a template of column names, such as "{user_id}:{sign_date}", for
	// ids that are made of several columns.
	BizID string
	// Columns maps roles to column names; "" or "-" takes a preset's column away.
	// An unmapped id is the primary key, when that is one integer column.
	Columns map[string]string
	// Status maps phases (not_started, processing, completed, failed) to stored
	// words. It replaces the words of the preset.
	Status map[string][]string
}

// NewMapping completes a preset (or none, when preset is empty) with what the
// configuration says. Its errors name the key and what is allowed.
func NewMapping(preset string, spec MappingSpec) (Mapping, error) {
	p, ok := presets[preset]
	if !ok {
		return Mapping{}, fmt.Errorf("preset: there is no %q; allowed are %s", preset, strings.Join(Presets(), ", "))
	}
	m := Mapping{preset: preset, bizType: spec.BizType, columns: maps.Clone(p.columns), optional: slices.Clone(p.optional)}
	if m.columns == nil {
		m.columns = map[string]string{}
	}
	if err := m.override(spec.Columns); err != nil {
		return Mapping{}, err
	}
	if err := m.setID(spec); err != nil {
		return Mapping{}, err
	}
	if err := m.setType(spec); err != nil {
		return Mapping{}, err
	}
	if err := m.setWords(p.words, spec.Status); err != nil {
		return Mapping{}, err
	}
	if p.needsStatus && m.columns[roleStatus] == "" {
		return Mapping{}, fmt.Errorf("columns.status: preset %s needs a status column, presence proves nothing there", preset)
	}
	return m, nil
}

// Presets lists the names that NewMapping takes.
func Presets() []string {
	names := slices.Sorted(maps.Keys(presets))
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}

// BizType returns the constant type of a table that holds only one; ok is false
// when a column holds the type.
func (m Mapping) BizType() (bizType string, ok bool) { return m.bizType, m.bizType != "" }

// HasStatus reports whether a status column is mapped. Without one, presence
// means completed.
func (m Mapping) HasStatus() bool { return m.columns[roleStatus] != "" }

// Outbox reports whether the table is a local message table on the sending
// side: its open rows wait to be sent.
func (m Mapping) Outbox() bool { return m.preset == "outbox" }

// WordsOf lists the stored words of a phase, in the order of their bytes.
func (m Mapping) WordsOf(phase flow.Phase) []string {
	var words []string
	for word, means := range m.words {
		if means == phase {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// PhaseOf tells what a stored status means.
func (m Mapping) PhaseOf(status string) flow.Phase {
	if phase, ok := m.words[status]; ok {
		return phase
	}
	return flow.Unmapped
}

func (m *Mapping) override(columns map[string]string) error {
	for _, role := range slices.Sorted(maps.Keys(columns)) {
		name := columns[role]
		switch {
		case !slices.Contains(roles, role):
			return fmt.Errorf("columns.%s: no such column role; allowed are %s", role, strings.Join(roles, ", "))
		case strings.ContainsAny(name, "\x00\n"):
			return fmt.Errorf("columns.%s: %q is no column name", role, name)
		case name == unmap || name == "":
			// An explicit "-" for id must not be read as "find the key yourself".
			delete(m.columns, role)
			if role == roleID {
				m.columns[role] = unmap
			}
		default:
			m.columns[role] = name
		}
		m.optional = slices.DeleteFunc(m.optional, func(r string) bool { return r == role })
	}
	return nil
}

func (m *Mapping) setID(spec MappingSpec) error {
	column := m.columns[roleBizID]
	delete(m.columns, roleBizID)
	if spec.BizID == "" {
		if column == "" {
			return fmt.Errorf("biz_id: needed: map columns.biz_id, or give a template of column names such as {user_id}:{sign_date}")
		}
		// A column name may hold anything, so it is not parsed as a template.
		m.id = flow.Template{}
		m.columns[roleBizID] = column
		return nil
	}
	if given := spec.Columns[roleBizID]; given != "" && given != unmap {
		return fmt.Errorf("biz_id: the template %q and columns.biz_id exclude each other", spec.BizID)
	}
	template, err := flow.ParseTemplate(spec.BizID)
	if err != nil {
		return fmt.Errorf("biz_id: %w", err)
	}
	if len(template.Names()) == 0 {
		return fmt.Errorf("biz_id: template %q names no column; it looks like {user_id}:{sign_date}", spec.BizID)
	}
	m.id = template
	return nil
}

func (m *Mapping) setType(spec MappingSpec) error {
	column := m.columns[roleBizType]
	switch {
	case spec.BizType == "" && column == "":
		return fmt.Errorf("biz_type: needed: the one type that this table holds, or columns.biz_type")
	case spec.BizType != "" && column != "":
		return fmt.Errorf("biz_type: the column %q already holds it; leave biz_type out, or take the column away with columns.biz_type: %q", column, unmap)
	}
	return nil
}

func (m *Mapping) setWords(preset map[flow.Phase][]string, given map[string][]string) error {
	words := preset
	if len(given) > 0 {
		words = map[flow.Phase][]string{}
		for key, list := range given {
			if !slices.Contains(phases, flow.Phase(key)) {
				return fmt.Errorf("status.%s: no such phase; allowed are not_started, processing, completed, failed", key)
			}
			words[flow.Phase(key)] = list
		}
	}
	if m.columns[roleStatus] == "" {
		if len(given) > 0 {
			return fmt.Errorf("status: words are given, but no column: map columns.status")
		}
		return nil
	}
	if len(words) == 0 {
		return fmt.Errorf("status: needed for column %q: the stored words of not_started, processing, completed, failed", m.columns[roleStatus])
	}
	m.words = map[string]flow.Phase{}
	for _, phase := range phases {
		for _, word := range words[phase] {
			if other, taken := m.words[word]; taken {
				return fmt.Errorf("status.%s: %q already means %s", phase, word, other)
			}
			m.words[word] = phase
		}
	}
	return nil
}
