package draft

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// recordPresets are the shapes among which a table that records runs is placed.
var recordPresets = []string{"idempotent_record", "message_deduplication", "message_idempotence", "message_processed", "consume_log"}

// build describes the table by the preset from which it differs least.
func (r candidate) build() *Ledger {
	var best *Ledger
	for _, preset := range recordPresets {
		l := r.describe(preset)
		if best == nil || l.distance(r) < best.distance(r) {
			best = l
		}
	}
	return best
}

// distance counts what a configuration has to say beyond the preset.
func (l *Ledger) distance(r candidate) int {
	n := 2 * (len(l.Columns) + len(l.Status))
	if l.Preset != r.group.Tables[0] {
		n++
	}
	return n
}

// describe says how the table differs from a preset.
func (r candidate) describe(preset string) *Ledger {
	l := &Ledger{Preset: preset, Columns: map[string]string{}, hasType: r.has(roleBizType), hasStatus: r.has(roleStatus)}
	if preset == "composite" {
		// A column that sounds like a type is a part of the id, if anything.
		l.hasType = false
		delete(r.roles, roleBizType)
	}
	expected, presetWords, _ := ledger.Shape(preset)
	for role, column := range expected {
		if c, ok := r.roles[role]; !ok {
			l.Columns[role] = "-"
		} else if !strings.EqualFold(c.Name, column) {
			l.Columns[role] = c.Name
		}
	}
	for role, c := range r.roles {
		if expected[role] == "" && role != roleBizID {
			l.Columns[role] = c.Name
		}
	}
	if id, ok := r.roles[roleBizID]; ok && expected[roleBizID] == "" {
		l.Columns[roleBizID] = id.Name
	}
	if !l.hasType {
		// The one type of the table is not known yet; any will do to read it.
		l.BizType = placeholderType
	}
	if l.hasStatus {
		l.statusColumn = r.roles[roleStatus].Name
		l.readStatus(r.roles[roleStatus], presetWords)
	}
	return l
}

// placeholderType stands for the biz_type of a table until it is known.
const placeholderType = "?"

// readStatus finds out what the stored words mean from what the owner of the
// table wrote down, else it assumes what the preset says.
func (l *Ledger) readStatus(c ledger.ColumnFacts, preset map[flow.Phase][]string) {
	s, from := byMeaning(c.Words), flow.T("the words of its ENUM", "其 ENUM 的取值")
	if !s.enough() {
		s, from = byLegend(c.Comment), flow.T("its comment: %s", "其注释：%s", shortened(c.Comment))
	}
	if !s.enough() {
		l.assumed = true
		usual := "idempotent_record"
		if c.Text() {
			usual = "message_deduplication"
		}
		if _, s.words, _ = ledger.Shape(usual); !fitting(c, preset) {
			l.Status = s.words
		}
		return
	}
	l.take(s, from, preset)
}

// fitting reports whether the column can hold the words.
func fitting(c ledger.ColumnFacts, list map[flow.Phase][]string) bool {
	completed := list[flow.Completed]
	return len(completed) > 0 && c.Text() == strings.ContainsFunc(completed[0], unicode.IsLetter)
}

// take puts the words in force, and says how they were come by.
func (l *Ledger) take(s statusWords, from flow.Text, preset map[flow.Phase][]string) {
	l.assumed, l.Status = false, nil
	if !sameWords(s.words, preset) {
		l.Status = s.words
	}
	l.Why = append(l.Why, flow.T("what column %s means is told by %s", "列 %s 的含义依据%s", flow.Visible(l.statusColumn), from))
	if s.early {
		l.Doubts = append(l.Doubts, flow.T("%s is taken for processing, because no other word means that", "%s 被当作处理中，因为没有其他取值表示处理中", visibleList(s.words[flow.Processing])))
	}
	if len(s.unknown) > 0 {
		l.Doubts = append(l.Doubts, flow.T("what the status %s means is not known: such a record is shown as unreadable", "状态 %s 的含义未知：这样的记录会显示为无法解读", visibleList(s.unknown)))
	}
}

// maxComment bounds how much of a column's comment is repeated.
const maxComment = 80

func shortened(s string) string {
	s = flow.Visible(s)
	if runes := []rune(s); len(runes) > maxComment {
		s = string(runes[:maxComment]) + "…"
	}
	return s
}

// maxWords bounds how many different status words are taken for a status at all.
const maxWords = 12

// Learn compares the assumed meaning of the status with the words that the
// newest rows hold. Words that cannot be explained make the ledger unsure.
func (l *Ledger) Learn(stored map[string]int) {
	if !l.hasStatus || l.Preset == "state_machine" || l.Preset == "outbox" {
		return
	}
	list := slices.Sorted(maps.Keys(stored))
	_, preset, _ := ledger.Shape(l.Preset)
	inForce := preset
	if len(l.Status) > 0 {
		inForce = l.Status
	}
	strange := slices.DeleteFunc(slices.Clone(list), func(w string) bool {
		return slices.ContainsFunc(phases, func(p flow.Phase) bool { return slices.Contains(inForce[p], w) })
	})
	switch {
	case !l.assumed:
		if len(strange) > 0 && len(strange) <= maxWords {
			l.Doubts = append(l.Doubts, flow.T("the newest rows also hold the status %s, which nobody explains: such a record is shown as unreadable", "最新的行中还有状态 %s，没有说明其含义：这样的记录会显示为无法解读", visibleList(strange)))
		}
	case len(list) == 0:
		l.Confidence = min(l.Confidence, Likely)
		l.Doubts = append(l.Doubts, flow.T("no row was read, so the words of the status are those that are usual for this shape", "没有读到任何行，状态取值采用该表形的惯用值"))
	case len(strange) == 0:
		l.Confidence = min(l.Confidence, Likely)
		l.Doubts = append(l.Doubts, flow.T("nobody explains the status; its values in the newest rows %s fit what is usual for this shape", "没有说明状态的含义；最新行中的取值 %s 符合该表形的惯用值", visibleList(list)))
	default:
		l.learnWords(list, preset)
	}
}

func (l *Ledger) learnWords(list []string, preset map[flow.Phase][]string) {
	if s := byMeaning(list); len(list) <= maxWords && len(s.words[flow.Completed]) > 0 && len(s.unknown) == 0 {
		usual, from := map[flow.Phase][]string{}, flow.T("the words in the newest rows", "最新行中的取值")
		for p, set := range s.words {
			usual[p] = set
		}
		for _, p := range []flow.Phase{flow.Processing, flow.Failed} {
			// A word that no row holds just now must not be missing later.
			if len(usual[p]) == 0 {
				usual[p] = []string{string(p)}
			}
		}
		s.words = usual
		l.take(s, from, preset)
		l.Confidence = min(l.Confidence, Likely)
		return
	}
	l.Confidence = Unsure
	shown := list[:min(len(list), maxWords)]
	l.Doubts = append(l.Doubts, flow.T("what the status %s means is not known: fill status in", "状态 %s 的含义未知：请填写 status", visibleList(shown)))
}

var (
	templateShape = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	nameRest      = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// templateName reports whether a template can name the column.
func templateName(column string) bool { return templateShape.MatchString(column) }

// configName makes a name that a configuration takes of any text.
func configName(text, otherwise string) string {
	name := strings.Trim(nameRest.ReplaceAllString(text, "_"), "_.-")
	if len(name) > 56 {
		name = name[:56]
	}
	if name == "" {
		return otherwise
	}
	return name
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// nameText writes a name of the configuration: in quotes where YAML would read
// it as something else than text.
func nameText(name string) string {
	switch strings.ToLower(name) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return quoted(name)
	}
	if !plainWord.MatchString(name) {
		return quoted(name)
	}
	return name
}

// uniqueNames hands out each name once.
type uniqueNames map[string]int

func (u uniqueNames) take(name string) string {
	for {
		u[name]++
		if u[name] == 1 {
			return name
		}
		name = fmt.Sprintf("%s-%d", name, u[name])
	}
}
