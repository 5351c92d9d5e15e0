package verdict

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
)

// source is one piece of evidence that can be missing.
type source string

const (
	fromRecord  source = "record"
	fromArchive source = "archive"
	fromLock    source = "lock"
	fromMarker  source = "marker"
	fromQueues  source = "queues"
	fromTap     source = "tap"
	fromTrail   source = "trail"
)

// state is what a source came to; ok is false when the key has no such source,
// so that nothing there can be missing.
func (s source) state(d dossier.Dossier) (state flow.State, ok bool) {
	account := func(a *flow.Account) (flow.State, bool) {
		if a == nil {
			return "", false
		}
		return a.State, true
	}
	redis := func(r *dossier.RedisEvidence) (flow.State, bool) {
		switch {
		case r == nil:
			return "", false
		case r.State == flow.Found && r.Ambiguous(): // evidence for neither key
			return flow.Unknown, true
		}
		return r.State, true
	}
	switch s {
	case fromRecord:
		return d.Record.State, true
	case fromArchive:
		if d.Record.Archive == nil {
			return "", false
		}
		return d.Record.Archive.State, true
	case fromLock:
		return redis(d.Lock)
	case fromMarker:
		return redis(d.Marker)
	case fromQueues:
		if d.Broker == nil {
			return "", false
		}
		return d.Broker.State, true
	case fromTap:
		return account(d.Tap)
	}
	return account(d.Trail)
}

// known reports that the source is no gap in the evidence.
func (s source) known(d dossier.Dossier) bool {
	state, ok := s.state(d)
	return !ok || state == flow.Found || state == flow.Absent
}

// rests says on what a verdict rests: which severities it may have, and which
// sources must have been read for it to be given. It is the table of VERDICTS.md,
// seen from the other side.
type rests struct {
	severities []Severity
	on         func(dossier.Dossier, Verdict) []source
	// primary: a replica that may lag behind is not enough.
	primary bool
}

func always(sources ...source) func(dossier.Dossier, Verdict) []source {
	return func(dossier.Dossier, Verdict) []source { return sources }
}

// withArchive adds the archive where the ledger itself has no row of the key.
func withArchive(sources ...source) func(dossier.Dossier, Verdict) []source {
	return func(d dossier.Dossier, _ Verdict) []source {
		if newEvidence(d).row == nil {
			return append(slices.Clone(sources), fromArchive)
		}
		return sources
	}
}

func onlyOf(list ...Severity) []Severity { return list }

var foundations = map[Code]rests{
	KeyAmbiguous:    {severities: onlyOf(Critical), on: always(fromRecord)},
	Unknown:         {severities: onlyOf(Unsure), on: always()},
	ClockSkew:       {severities: onlyOf(Warning), on: always(fromRecord)},
	Unreadable:      {severities: onlyOf(Warning), on: always(fromRecord)},
	MayHaveRunTwice: {severities: onlyOf(Warning), on: always(fromRecord)},
	DeadLettered:    {severities: onlyOf(Critical), on: always(fromRecord, fromLock, fromTap), primary: true},
	LostSuspected:   {severities: onlyOf(Critical), on: withArchive(fromRecord, fromLock, fromMarker, fromQueues), primary: true},
	FailedUnplaced:  {severities: onlyOf(Warning), on: always(fromRecord), primary: true},
	RetryScheduled:  {severities: onlyOf(Info), on: always(fromRecord, fromTrail)},
	Completed:       {severities: onlyOf(OK), on: always(fromRecord)},
	Waiting:         {severities: onlyOf(OK, Warning), on: always(fromRecord, fromLock, fromMarker, fromTap, fromTrail)},
	MaybeWaiting:    {severities: onlyOf(Info, Warning), on: always(fromRecord, fromLock, fromMarker)},
	Archived:        {severities: onlyOf(OK), on: always(fromRecord, fromArchive, fromLock)},
	NeverSeen:       {severities: onlyOf(Info), on: withArchive(fromRecord, fromLock, fromMarker, fromQueues), primary: true},
	// Two completed rows of the shards that were read are two, whatever the others
	// hold; so are two runs that consumers report.
	RanTwice: {severities: onlyOf(Critical), on: always()},
	// A lock without TTL decides alone with the record. A marker blocks only where
	// nobody holds the lock.
	Stuck: {severities: onlyOf(Critical), primary: true, on: func(d dossier.Dossier, v Verdict) []source {
		if v.Layer == flow.LayerMySQL || there(d.Lock) && d.Lock.NoTTL {
			return []source{fromRecord, fromLock}
		}
		return []source{fromRecord, fromLock, fromMarker}
	}},
	// A young record needs no lock as proof.
	Running: {severities: onlyOf(OK), on: func(d dossier.Dossier, _ Verdict) []source {
		if newEvidence(d).fresh() {
			return []source{fromRecord}
		}
		return []source{fromRecord, fromLock}
	}},
	Acquiring: {severities: onlyOf(OK), on: func(d dossier.Dossier, _ Verdict) []source {
		if there(d.Lock) {
			return []source{fromRecord, fromLock}
		}
		return []source{fromRecord, fromMarker}
	}},
}

// cases is how many random dossiers one run of the tests judges, and mostCases how
// many more it takes at the most until every code was among the verdicts.
const cases, mostCases = 5_000, 500_000

// laws are what holds for every dossier; each returns what is wrong, or nothing.
var laws = []func(dossier.Dossier, Verdict) string{
	restsOnWhatWasRead,
	hasTheSeverityOfItsCode,
	neverSeenIfNobodyTells,
	isTheSameAgain,
	isCompleteAndHarmless,
}

// TestLawsHoldForRandomDossiers groups what breaks a law by verdict and fault. The
// two numbers of a case make the same dossier again.
func TestLawsHoldForRandomDossiers(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	judged := map[Code]int{}
	broken := map[string]int{}
	n := uint64(0)
	for ; n < cases || n < mostCases && len(judged) < len(Codes()); n++ {
		d := dice{Rand: rand.New(rand.NewPCG(seed, n))}.dossier()
		v := Judge(d)
		judged[v.Code]++
		for _, law := range laws {
			wrong := law(d, v)
			if wrong == "" {
				continue
			}
			fault := fmt.Sprintf("%s/%s: %s", v.Code, v.Layer, wrong)
			if broken[fault]++; broken[fault] == 1 {
				t.Errorf("case (%d, %d): %s\n  %s\n%s", seed, n, fault, v.Sentence.EN, outline(d))
			}
		}
	}
	for fault, times := range broken {
		t.Errorf("%d of %d: %s", times, n, fault)
	}
	for _, code := range Codes() {
		if judged[code] == 0 {
			t.Errorf("no case is %s: the dossiers do not reach every rule", code)
		}
	}
}

// outline is what the rules look at first, for whoever reads a failure.
func outline(d dossier.Dossier) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  record %s, replica %v, lag known %v %s\n", d.Record.State, d.Record.Replica, d.Record.LagKnown, d.Record.Lag)
	for _, r := range d.Record.Rows {
		fmt.Fprintf(&b, "    row exact %v, %s, age %v %s\n", r.Exact, r.Phase, r.AgeKnown, r.Age)
	}
	if a := d.Record.Archive; a != nil {
		fmt.Fprintf(&b, "  archive %s\n", a.State)
	}
	for i, r := range []*dossier.RedisEvidence{d.Lock, d.Marker} {
		if r != nil {
			fmt.Fprintf(&b, "  %s %s, TTL %s, no TTL %v, foreign %v, ambiguous %v\n", []string{"lock", "marker"}[i], r.State, r.TTL, r.NoTTL, r.Foreign, r.Ambiguous())
		}
	}
	if d.Broker != nil {
		fmt.Fprintf(&b, "  queues %s\n", d.Broker.State)
		for _, q := range d.Broker.Queues {
			fmt.Fprintf(&b, "    %s %s, %d messages\n", q.Role, q.State, q.Messages())
		}
	}
	for i, a := range []*flow.Account{d.Tap, d.Trace, d.Trail} {
		if a != nil {
			fmt.Fprintf(&b, "  %s %s since %s\n", []string{"tap", "trace", "trail"}[i], a.State, a.Since)
			for _, e := range a.Events {
				fmt.Fprintf(&b, "    %s %s ago, worker %q\n", e.Kind, d.At.Sub(e.At), e.Worker)
			}
		}
	}
	return b.String()
}

func TestEveryCodeSaysOnWhatItRests(t *testing.T) {
	for _, code := range Codes() {
		if r := foundations[code]; r.on == nil || len(r.severities) == 0 {
			t.Errorf("%s has no entry", code)
		}
	}
	if len(foundations) != len(Codes()) {
		t.Errorf("%d entries for %d codes", len(foundations), len(Codes()))
	}
}

func restsOnWhatWasRead(d dossier.Dossier, v Verdict) string {
	r := foundations[v.Code]
	for _, s := range r.on(d, v) {
		if !s.known(d) {
			state, _ := s.state(d)
			return fmt.Sprintf("the %s is %s, or may be another key's", s, state)
		}
	}
	if lags := d.Record.Replica && !(d.Record.LagKnown && d.Record.Lag <= time.Second); r.primary && lags {
		return "the record comes from a replica that may be behind"
	}
	return ""
}

func hasTheSeverityOfItsCode(_ dossier.Dossier, v Verdict) string {
	if !slices.Contains(foundations[v.Code].severities, v.Severity) {
		return fmt.Sprintf("its severity is %s", v.Severity)
	}
	if !slices.Contains([]flow.Layer{flow.LayerBroker, flow.LayerRedis, flow.LayerMySQL, flow.LayerNone}, v.Layer) {
		return "there is no such layer"
	}
	return ""
}

func neverSeenIfNobodyTells(d dossier.Dossier, v Verdict) string {
	for i, a := range []*flow.Account{d.Tap, d.Trace, d.Trail} {
		if v.Code == NeverSeen && a != nil && len(a.Events) > 0 {
			return fmt.Sprintf("the %s tells of the key", []string{"tap", "trace", "trail"}[i])
		}
	}
	return ""
}

func isTheSameAgain(d dossier.Dossier, v Verdict) string {
	if again := Judge(d); !reflect.DeepEqual(v, again) {
		return "judged again, it is another verdict"
	}
	return ""
}

// negative is a number below zero. Times of day and dates hold hyphens, too.
var (
	instant  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)`)
	negative = regexp.MustCompile(`-\d`)
)

func isCompleteAndHarmless(_ dossier.Dossier, v Verdict) string {
	if len(v.Facts) == 0 {
		return "it has no facts"
	}
	texts := append([]flow.Text{v.Sentence}, v.Next...)
	texts = append(texts, v.Advice...)
	for _, f := range v.Facts {
		texts = append(texts, f.Text)
	}
	for _, n := range v.Notes {
		texts = append(texts, n.Text)
		if n.Code == "" {
			return "a note without a code"
		}
	}
	for _, text := range texts {
		for _, lang := range flow.Languages {
			if wrong := fault(text.In(lang)); wrong != "" {
				return fmt.Sprintf("%s in %s: %q", wrong, lang, text.In(lang))
			}
		}
	}
	return ""
}

func fault(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "an empty text"
	case strings.Contains(text, "%!"), strings.Contains(text, "%%"), strings.Contains(text, "<nil>"):
		return "a badly formatted text"
	case !plain(text):
		return "a character that cannot be seen"
	case strings.Contains(text, "-") && negative.MatchString(instant.ReplaceAllString(text, "")):
		return "a negative number"
	}
	return ""
}
