package answer

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// Finding is a key whose verdict is a problem, or could not be decided. It
// holds the verdict in short: the evidence is a look-up away.
type Finding struct {
	flow.Place
	Code     verdict.Code
	Severity verdict.Severity
	Layer    flow.Layer
	Sentence flow.Text
	// Began is when the key last showed a sign of life, or when its Redis key
	// was set. Where no layer tells that, AgeKnown is false and Began is Since.
	Began    time.Time
	AgeKnown bool
	// Since is when this process first found it, JudgedAt when it was last judged.
	Since, JudgedAt time.Time
}

// Finding returns the answer as a finding; ok is false when there is nothing to
// report: also for a key that no layer shows, whatever waits in its queues.
// Since is the time of the answer.
func (a Answer) Finding() (f Finding, ok bool) {
	v := a.Verdict
	if severityRank(v.Severity) < 0 || !a.hasTrace() {
		return Finding{}, false
	}
	f = Finding{
		Place: flow.Place{Flow: a.Flow.Name, Key: a.Key}, Code: v.Code, Severity: v.Severity, Layer: v.Layer, Sentence: v.Sentence,
		Since: a.At, JudgedAt: a.At,
	}
	if f.Began, f.AgeKnown = a.began(); !f.AgeKnown {
		f.Began = f.Since
	}
	return f, true
}

// Age is how long ago the finding began; ok is false where that is not known.
func (f Finding) Age(now time.Time) (age time.Duration, ok bool) {
	return max(0, now.Sub(f.Began)), f.AgeKnown
}

// began takes the oldest sign among the rows of the key; without one, when its
// lock or else its marker was set. A time in the future is none.
func (a Answer) began() (began time.Time, known bool) {
	for _, r := range a.Record.Rows {
		if !r.Exact || !r.AgeKnown || r.Age < 0 {
			continue
		}
		if sign := a.Record.ReadAt.Add(-r.Age); !known || sign.Before(began) {
			began, known = sign, true
		}
	}
	if known {
		return began, true
	}
	for _, k := range []struct {
		seen  *dossier.RedisEvidence
		shape *flow.RedisKey
	}{{a.Lock, a.Flow.Lock}, {a.Marker, a.Flow.Marker}} {
		if k.seen != nil && k.seen.State == flow.Found && !k.seen.NoTTL && !k.shape.Renewed && k.shape.TTL > 0 && k.seen.TTL <= k.shape.TTL {
			return k.seen.ReadAt.Add(k.seen.TTL - k.shape.TTL), true
		}
	}
	return time.Time{}, false
}

// severityRank orders findings, the worst first; negative for no finding. What
// could not be decided comes after what is known to be wrong.
func severityRank(s verdict.Severity) int {
	return slices.Index([]verdict.Severity{verdict.Critical, verdict.Warning, verdict.Unsure}, s)
}

// Findings is what the collector has found so far.
type Findings struct {
	// At is when the list was made.
	At time.Time
	// List is in the order of severity, then age, the oldest first.
	List []Finding
	// Pending is how many suspects are not judged yet.
	Pending int
	// Coverage says where suspects come from, and what was not looked through.
	Coverage []flow.Text
	// Unread: a ledger could not be read to its end, so there may be more.
	Unread bool
}

// Order is how a list of findings is sorted.
type Order string

const (
	// ByWorst: the worst first, among those the oldest.
	ByWorst Order = "worst"
	// ByAge: the oldest first, those of unknown age last.
	ByAge Order = "age"
	// ByFound: what this process found last stands first.
	ByFound Order = "found"
)

// Orders lists every order; the first is the usual one.
func Orders() []Order { return []Order{ByWorst, ByAge, ByFound} }

// mark is the place of a finding in an order. In the usual one it changes only
// when its severity or its beginning does.
type mark struct {
	rank  int
	began int64
	// tie tells findings of the same instant apart: keys can be too long for a mark.
	tie uint64
}

func (f Finding) mark(o Order) mark {
	hash := sha256.New()
	for _, part := range []string{f.Flow, f.Key.BizType, f.Key.BizID} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	m := mark{severityRank(f.Severity), f.Began.UnixNano(), binary.BigEndian.Uint64(hash.Sum(nil))}
	switch o {
	case ByAge:
		// An age that is not known says nothing, so it comes last.
		m.rank = 0
		if !f.AgeKnown {
			m.rank = 1
		}
	case ByFound:
		m.rank, m.began = 0, -f.Since.UnixNano()
	}
	return m
}

func (m mark) compare(n mark) int {
	return cmp.Or(cmp.Compare(m.rank, n.rank), cmp.Compare(m.began, n.began), cmp.Compare(m.tie, n.tie))
}

// String is the mark as a parameter of an address.
func (m mark) String() string { return fmt.Sprintf("%d.%d.%x", m.rank, m.began, m.tie) }

// ErrMark is the error of a mark that no finding ever had.
var ErrMark = errors.New("not a mark that a list of findings gave")

func parseMark(text string) (m mark, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return mark{}, ErrMark
	}
	var errs [3]error
	m.rank, errs[0] = strconv.Atoi(parts[0])
	m.began, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	m.tie, errs[2] = strconv.ParseUint(parts[2], 16, 64)
	if errors.Join(errs[:]...) != nil || m.String() != text {
		return mark{}, ErrMark
	}
	return m, nil
}

// SortFindings puts the worst first, among those the oldest.
func SortFindings(list []Finding) { ByWorst.Sort(list) }

// Sort sorts the list in place.
func (o Order) Sort(list []Finding) {
	marks := make(map[flow.Place]mark, len(list))
	for _, f := range list {
		marks[f.Place] = f.mark(o)
	}
	slices.SortFunc(list, func(a, b Finding) int { return marks[a.Place].compare(marks[b.Place]) })
}

// Filter narrows a list of findings down; zero values let everything pass.
type Filter struct {
	Flow    string
	Verdict verdict.Code
	// BizType is a pointer, because the empty type is one.
	BizType  *string
	Layer    flow.Layer
	Severity verdict.Severity
	// Before lets those pass that are known to have begun no later.
	Before time.Time
}

func (o Filter) passes(f Finding) bool {
	return (o.Flow == "" || f.Flow == o.Flow) && (o.Verdict == "" || f.Code == o.Verdict) && (o.BizType == nil || f.Key.BizType == *o.BizType) &&
		(o.Layer == "" || f.Layer == o.Layer) && (o.Severity == "" || f.Severity == o.Severity) &&
		(o.Before.IsZero() || f.AgeKnown && !f.Began.After(o.Before))
}

// Select returns the findings that pass.
func (o Filter) Select(list []Finding) []Finding {
	passing := make([]Finding, 0, len(list))
	for _, f := range list {
		if o.passes(f) {
			passing = append(passing, f)
		}
	}
	return passing
}

// Page is ByWorst.Page.
func Page(list []Finding, after string, limit int) (page []Finding, next string, err error) {
	return ByWorst.Page(list, after, limit)
}

// Page returns at most limit findings of a list in this order, from the mark after on,
// and the mark for the page that follows; empty when there is none. A list that
// has changed since does not repeat or skip what stayed as it was. Error: ErrMark.
func (o Order) Page(list []Finding, after string, limit int) (page []Finding, next string, err error) {
	start := 0
	if after != "" {
		m, err := parseMark(after)
		if err != nil {
			return nil, "", err
		}
		start, _ = slices.BinarySearchFunc(list, m, func(f Finding, m mark) int {
			if f.mark(o).compare(m) <= 0 {
				return -1
			}
			return 1
		})
	}
	page = list[start:min(start+limit, len(list))]
	if len(page) > 0 && start+len(page) < len(list) {
		next = page[len(page)-1].mark(o).String()
	}
	return page, next, nil
}

// FindingsJSON is a page of findings as the API and `idemscope findings --json`
// give it.
type FindingsJSON struct {
	Findings []FindingJSON `json:"findings"`
	// Total counts the findings that pass the filter, on all pages.
	Total int `json:"total"`
	// Next is the value of after= for the page that follows.
	Next     string   `json:"next,omitempty"`
	Pending  int      `json:"pending"`
	Coverage []string `json:"coverage"`
}

// FindingJSON is one finding.
type FindingJSON struct {
	Flow    string           `json:"flow"`
	Key     KeyJSON          `json:"key"`
	Verdict ShortVerdictJSON `json:"verdict"`
	// Age is null where it is not known.
	Age      *float64 `json:"age"`
	Since    string   `json:"since"`
	JudgedAt string   `json:"judged_at"`
	// Link leads to the page of the key, relative to the address of the answer.
	Link string `json:"link,omitempty"`
}

// ShortVerdictJSON is a verdict without its evidence.
type ShortVerdictJSON struct {
	Code     verdict.Code     `json:"code"`
	Severity verdict.Severity `json:"severity"`
	Layer    flow.Layer       `json:"layer"`
	Sentence string           `json:"sentence"`
}

// JSON words one page of the findings in lang. link may be nil.
func (f Findings) JSON(page []Finding, total int, next string, lang flow.Language, link func(flow.Place) string) FindingsJSON {
	j := FindingsJSON{Findings: []FindingJSON{}, Total: total, Next: next, Pending: f.Pending, Coverage: wordAll(f.Coverage, lang)}
	for _, found := range page {
		one := FindingJSON{
			Flow: found.Flow, Key: keyJSON(found.Key),
			Verdict: ShortVerdictJSON{found.Code, found.Severity, found.Layer, found.Sentence.In(lang)},
			Since:   found.Since.Format(time.RFC3339Nano), JudgedAt: found.JudgedAt.Format(time.RFC3339Nano),
		}
		if age, ok := found.Age(f.At); ok {
			one.Age = new(age.Seconds())
		}
		if link != nil {
			one.Link = link(found.Place)
		}
		j.Findings = append(j.Findings, one)
	}
	return j
}
