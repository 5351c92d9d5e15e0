package answer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"idemscope/internal/flow"
)

const (
	// maxPlaces bounds how many keys one search looks up.
	maxPlaces = 100
	// atOnce bounds how many of them are looked up at the same time.
	atOnce = 8
)

// Result is what a search found.
type Result struct {
	// Answers are those with any trace of the key; where there is none, the
	// keys that the text named outright.
	Answers []Answer
	// Cut: more biz_types could have been asked than the limit allows.
	Cut bool
	// Offers are other readings of the text. None of them stands for what was typed.
	Offers []Offer
}

// Offer is what else a text could mean: without what was pasted along with it, or
// by the keys that stand inside of it.
type Offer struct {
	// Why says what was done with the text.
	Why flow.Text
	// Query is what to search for instead; empty where Answers are keys inside the text.
	Query string
	// Answers is empty where the offer was not looked up.
	Answers []Answer
}

// HasTrace: some layer shows one of its keys, or could not be read.
func (o Offer) HasTrace() bool { return slices.ContainsFunc(o.Answers, Answer.hasTrace) }

// HasTrace: some layer shows one of the keys, or could not be read.
func (r Result) HasTrace() bool { return slices.ContainsFunc(r.Answers, Answer.hasTrace) }

// Search looks up everything that the text could mean, as it was typed. Other
// readings are offers: the text without what was pasted along with it, and, where
// nothing shows a trace of it as it was typed, the keys that stand inside of it.
// Errors: those of flow.Catalog.Read.
func (d *Desk) Search(ctx context.Context, query string) (Result, error) {
	result, err := d.search(ctx, query)
	if err != nil && !errors.Is(err, flow.ErrMessage) {
		return Result{}, err
	}
	if pasted, ok := flow.Unpaste(query); ok {
		if bare, bareErr := d.search(ctx, pasted.Bare); bareErr == nil {
			result.Offers = append(result.Offers, Offer{Why: without(pasted.Extra), Query: pasted.Bare, Answers: bare.Answers})
		}
	}
	if !result.HasTrace() {
		result.Offers = append(result.Offers, d.inside(ctx, query, result)...)
	}
	if err != nil && len(result.Offers) == 0 {
		return Result{}, err
	}
	return result, nil
}

// without words what was taken away from a text.
func without(extra []flow.Text) flow.Text {
	var en, zh []string
	for _, e := range extra {
		en, zh = append(en, e.EN), append(zh, e.ZH)
	}
	return flow.T("without %v", "去掉%v", flow.Text{EN: strings.Join(en, ", "), ZH: strings.Join(zh, "、")})
}

// inside looks up the keys that stand in the text, but for those that were looked up.
func (d *Desk) inside(ctx context.Context, query string, known Result) []Offer {
	line := d.options.Catalog.InLine(query)
	asked := map[flow.Place]bool{}
	for _, a := range known.Answers {
		asked[flow.Place{Flow: a.Flow.Name, Key: a.Key}] = true
	}
	for _, o := range known.Offers {
		for _, a := range o.Answers {
			asked[flow.Place{Flow: a.Flow.Name, Key: a.Key}] = true
		}
	}
	places := slices.DeleteFunc(line.Places, func(p flow.Place) bool { return asked[p] })
	var offers []Offer
	if len(places) > 0 {
		offers = append(offers, Offer{Why: flow.T("keys that stand in this text", "这段文本中的键"), Answers: d.answerAll(ctx, places)})
	}
	for _, id := range line.IDs {
		offers = append(offers, Offer{Why: flow.T("could be a biz_id in this text", "这段文本中可能的业务 ID"), Query: id})
	}
	return offers
}

// search looks up what the text means as it stands.
func (d *Desk) search(ctx context.Context, query string) (Result, error) {
	reading, err := d.options.Catalog.Read(query)
	if err != nil {
		return Result{}, err
	}
	places, cut := reading.Places, false
	if reading.BareID != "" {
		bare, incomplete := d.bare(ctx, reading.BareID)
		places, cut = append(slices.Clone(places), bare...), incomplete
	}
	if len(places) > maxPlaces {
		places, cut = places[:maxPlaces], true
	}
	answers := d.answerAll(ctx, places)
	if hits := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return !a.hasTrace() }); len(hits) > 0 {
		return Result{Answers: hits, Cut: cut}, nil
	}
	if len(reading.Places) > 0 {
		return Result{Answers: answers[:min(len(reading.Places), len(answers))], Cut: cut}, nil
	}
	return Result{Answers: answers, Cut: cut}, nil
}

// bare lists the keys that an id alone can mean: with every named biz_type, and
// with the biz_types that the ledgers of the other flows hold.
func (d *Desk) bare(ctx context.Context, id string) (places []flow.Place, cut bool) {
	for _, f := range d.options.Catalog.Flows() {
		types := f.BizTypes
		if f.Rest && d.options.Ledgers[f.Ledger] != nil {
			listed, complete, err := d.options.Ledgers[f.Ledger].Types(ctx, maxPlaces)
			cut = cut || !complete || err != nil
			named := d.options.Catalog.Types()
			types = slices.DeleteFunc(listed, func(t string) bool { return slices.Contains(named, t) })
		}
		for _, t := range types {
			places = append(places, flow.Place{Flow: f.Name, Key: flow.Key{BizType: t, BizID: id}})
		}
	}
	return places, cut
}

func (d *Desk) answerAll(ctx context.Context, places []flow.Place) []Answer {
	answers := make([]Answer, len(places))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, p := range places {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			// Places come from the catalog, so the flow exists.
			answers[i], _ = d.Answer(ctx, p)
		})
	}
	all.Wait()
	return answers
}
