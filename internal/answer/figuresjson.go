package answer

import (
	"math"
	"time"

	"idemscope/internal/flow"
)

// hour is the time that the figures of the overview are about.
const hour = time.Hour

// PerHour is how many steps make the last hour.
func (f Figures) PerHour() int {
	if f.Step <= 0 {
		return 0
	}
	return max(1, int(hour/f.Step))
}

// FiguresJSON are the operating figures as the API gives them.
type FiguresJSON struct {
	At          string            `json:"at"`
	LastPoint   *string           `json:"last_point_at"`
	StepSeconds float64           `json:"step_seconds"`
	Flows       []FlowFiguresJSON `json:"flows"`
	Undeclared  []UndeclaredJSON  `json:"undeclared"`
}

// FlowFiguresJSON is one flow: what is declared, and what is known.
type FlowFiguresJSON struct {
	Flow string `json:"flow"`
	// KeyRule is how biz_type and biz_id are made, as the configuration words it.
	KeyRule string   `json:"key_rule"`
	Types   []string `json:"biz_types"`
	// Rest: the flow takes all of the ledger that no other flow names.
	Rest          bool               `json:"rest"`
	Ledger        string             `json:"ledger"`
	LockTTL       *float64           `json:"lock_ttl_seconds"`
	Renewed       bool               `json:"lock_renewed"`
	StaleAfter    float64            `json:"stale_after_seconds"`
	P99OfTTL      *float64           `json:"p99_share_of_lock_ttl"`
	Shared        bool               `json:"shared_biz_types"`
	StaleIncludes string             `json:"stale_note"`
	TypesCut      bool               `json:"types_cut"`
	Figures       *FigureSetJSON     `json:"figures"`
	Queues        []QueueFiguresJSON `json:"queues"`
	BacklogLine   *LineJSON          `json:"backlog"`
	ByType        []TypeFiguresJSON  `json:"by_type"`
}

// FigureSetJSON are the five figures. Counts are of the last hour.
type FigureSetJSON struct {
	Conflicts   LineJSON     `json:"lock_conflicts"`
	DedupStatus LineJSON     `json:"dedup_status"`
	DedupRecord LineJSON     `json:"dedup_record"`
	Retries     LineJSON     `json:"retries"`
	P99         LineJSON     `json:"p99_seconds"`
	Stale       LineJSON     `json:"stale"`
	RetriesBy   FigureSource `json:"retries_measured_by"`
	P99By       FigureSource `json:"p99_measured_by"`
	P99Runs     uint64       `json:"p99_runs"`
	// P99Beyond: the value lies above the last bound that is measured.
	P99Beyond bool `json:"p99_beyond"`
}

// LineJSON is one figure: its value, and its points, the oldest first. null is
// what nobody knows, and Why says why.
type LineJSON struct {
	Value *float64 `json:"value"`
	// KnownPoints is how many of the points are known: a sum is of those.
	KnownPoints int        `json:"known_points"`
	Why         string     `json:"unknown_because"`
	Points      []*float64 `json:"points"`
}

// TypeFiguresJSON are the figures of one biz_type.
type TypeFiguresJSON struct {
	BizType string        `json:"biz_type"`
	Figures FigureSetJSON `json:"figures"`
}

// QueueFiguresJSON is one queue; totals are null when the broker did not tell.
type QueueFiguresJSON struct {
	Broker    string `json:"broker"`
	Queue     string `json:"queue"`
	Role      string `json:"role"`
	Ready     *int64 `json:"ready"`
	Unacked   *int64 `json:"unacked"`
	Delayed   *int64 `json:"delayed"`
	Dead      *int64 `json:"dead"`
	Consumers *int64 `json:"consumers"`
	Why       string `json:"unknown_because"`
}

// UndeclaredJSON is a biz_type that no flow takes.
type UndeclaredJSON struct {
	BizType string `json:"biz_type"`
	Ledger  string `json:"ledger"`
	Open    *int64 `json:"processing"`
}

// JSON words the figures in lang, for the given flows; those that the figures do
// not know are there without numbers. points is how many of them each line has.
func (f Figures) JSON(flows []flow.Flow, points int, lang flow.Language) FiguresJSON {
	j := FiguresJSON{At: f.At.Format(time.RFC3339Nano), StepSeconds: f.Step.Seconds(), Flows: []FlowFiguresJSON{}, Undeclared: []UndeclaredJSON{}}
	if !f.Last.IsZero() {
		j.LastPoint = new(f.Last.Format(time.RFC3339Nano))
	}
	for _, one := range flows {
		j.Flows = append(j.Flows, f.flowJSON(one, points, lang))
	}
	for _, u := range f.Undeclared {
		one := UndeclaredJSON{BizType: u.BizType, Ledger: u.Ledger}
		if u.OpenKnown {
			one.Open = new(u.Open)
		}
		j.Undeclared = append(j.Undeclared, one)
	}
	return j
}

func (f Figures) flowJSON(declared flow.Flow, points int, lang flow.Language) FlowFiguresJSON {
	j := FlowFiguresJSON{
		Flow: declared.Name, KeyRule: declared.KeyRule, Types: []string{}, Rest: declared.Rest, Ledger: declared.Ledger,
		StaleAfter: declared.StaleAfter.Seconds(), Queues: []QueueFiguresJSON{}, ByType: []TypeFiguresJSON{},
	}
	for _, t := range declared.BizTypes {
		j.Types = append(j.Types, flow.Visible(t))
	}
	if declared.Lock != nil {
		j.Renewed = declared.Lock.Renewed
		if declared.Lock.TTL > 0 {
			j.LockTTL = new(declared.Lock.TTL.Seconds())
		}
	}
	found, ok := f.Of(declared.Name)
	if !ok {
		return j
	}
	set := f.setJSON(found.FigureSet, points, lang)
	j.Figures, j.Shared, j.TypesCut = &set, found.Shared, found.TypesCut
	j.BacklogLine = new(lineJSON(found.Backlog, found.Backlog.Now, points, lang))
	if found.Unswept {
		j.StaleIncludes = UnsweptNote().In(lang)
	}
	if share, ok := LockShare(declared, found.P99Hour); ok {
		j.P99OfTTL = &share
	}
	for _, q := range found.Queues {
		j.Queues = append(j.Queues, q.json(lang))
	}
	for _, t := range found.Types {
		j.ByType = append(j.ByType, TypeFiguresJSON{t.BizType, f.setJSON(t.FigureSet, points, lang)})
	}
	return j
}

// LockShare is the P99 as a share of the TTL of the flow's lock; ok is false when
// one of the two is not known, or when no run can outlive the lock.
func LockShare(f flow.Flow, p99 Quantile) (share float64, ok bool) {
	if f.Lock == nil || f.Lock.TTL <= 0 || f.Lock.Renewed || p99.Runs == 0 {
		return 0, false
	}
	return p99.Seconds / f.Lock.TTL.Seconds(), true
}

// UnsweptNote says that the number of stale records may be too low.
func UnsweptNote() flow.Text {
	return flow.T("records older than exporter.lookback have not all been seen since the start, so there may be more",
		"启动以来尚未看完早于 exporter.lookback 的记录，实际可能更多")
}

func (q QueueFigures) json(lang flow.Language) QueueFiguresJSON {
	j := QueueFiguresJSON{Broker: q.Broker, Queue: flow.Visible(q.Name), Role: q.Role, Why: q.Why.In(lang)}
	if q.Known {
		j.Ready, j.Unacked, j.Delayed, j.Dead, j.Consumers = &q.Ready, &q.Unacked, &q.Delayed, &q.Dead, &q.Consumer
	}
	return j
}

func (f Figures) setJSON(s FigureSet, points int, lang flow.Language) FigureSetJSON {
	count := func(l Line) LineJSON {
		value := math.NaN()
		if sum, known := l.Tail(f.PerHour()).Sum(); known > 0 {
			value = sum
		}
		return lineJSON(l, value, points, lang)
	}
	p99 := math.NaN()
	if s.P99Hour.Runs > 0 {
		p99 = s.P99Hour.Seconds
	}
	return FigureSetJSON{
		Conflicts: count(s.Conflicts), DedupStatus: count(s.DedupStatus), DedupRecord: count(s.DedupRecord), Retries: count(s.Retries),
		P99: lineJSON(s.P99, p99, points, lang), Stale: lineJSON(s.Stale, s.Stale.Now, points, lang),
		RetriesBy: s.RetriesBy, P99By: s.P99By, P99Runs: s.P99Hour.Runs, P99Beyond: s.P99Hour.Beyond,
	}
}

func lineJSON(l Line, value float64, points int, lang flow.Language) LineJSON {
	l = l.Tail(points)
	j := LineJSON{Value: knownNumber(value), Why: l.Why.In(lang), Points: make([]*float64, 0, len(l.Points))}
	_, j.KnownPoints = l.Sum()
	for _, p := range l.Points {
		j.Points = append(j.Points, knownNumber(p))
	}
	return j
}

// knownNumber is nil for what nobody knows.
func knownNumber(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}
