package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// part is where a share of the metrics comes from.
type part struct {
	from prometheus.Gatherer
	// changes grows after each change of what is gathered. It is nil when that
	// changes all the time.
	changes func() uint64
}

// gathered is a part with what it said last.
type gathered struct {
	part
	known    bool
	at       uint64 // the changes that are in it
	families []*dto.MetricFamily
	failure  error
}

func (g *gathered) now() ([]*dto.MetricFamily, error) {
	if g.changes == nil {
		return g.from.Gather()
	}
	// The changes are counted first: one that comes while the rest is gathered
	// is gathered once more, and never missed.
	if changes := g.changes(); !g.known || changes != g.at {
		g.families, g.failure = g.from.Gather()
		g.known, g.at = true, changes
	}
	return g.families, g.failure
}

// page is what /metrics says. It keeps what was gathered and written until that
// changes: most of it does so only when a source was polled, and to gather and
// write it anew is nearly all that a scrape costs.
type page struct {
	log   *slog.Logger
	slots chan struct{}

	mu       sync.Mutex
	parts    []*gathered
	families map[string]*family
}

func newPage(parts []part, log *slog.Logger) *page {
	p := &page{log: log, slots: make(chan struct{}, maxScrapes)}
	for _, one := range parts {
		p.parts = append(p.parts, &gathered{part: one})
	}
	return p
}

// ServeHTTP answers from memory.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		http.Error(w, fmt.Sprintf("%d scrapes are being answered, try again later", maxScrapes), http.StatusServiceUnavailable)
		return
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	texts, err := p.write(format, r.URL.Query()["name[]"])
	if err != nil {
		p.log.Error("metrics are incomplete", "err", err)
	}
	if err != nil && len(texts) == 0 {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Type", string(format))
	for _, text := range texts {
		if _, err := w.Write(text); err != nil {
			return // the client is gone
		}
	}
}

// write returns what each metric says, by the order of their names; with names,
// only those. An error tells what is missing in it.
func (p *page) write(format expfmt.Format, names []string) (texts [][]byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failures := []error{p.refresh()}
	for _, name := range slices.Sorted(maps.Keys(p.families)) {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		text, err := p.families[name].in(format)
		if failures = append(failures, err); err == nil {
			texts = append(texts, text)
		}
	}
	return texts, errors.Join(failures...)
}

// refresh gathers what has changed.
func (p *page) refresh() error {
	var failures []error
	pieces := map[string][]*dto.MetricFamily{}
	for _, part := range p.parts {
		families, err := part.now()
		failures = append(failures, err)
		for _, f := range families {
			pieces[f.GetName()] = append(pieces[f.GetName()], f)
		}
	}
	next := make(map[string]*family, len(pieces))
	for name, from := range pieces {
		f := p.families[name]
		if f == nil || !slices.Equal(f.from, from) {
			f = newFamily(from)
		}
		failures = append(failures, f.failure)
		next[name] = f
	}
	p.families = next
	return errors.Join(failures...)
}

// family is one metric with all its series.
type family struct {
	// from are the pieces that parts gave. As long as those are the same, so is
	// all the rest.
	from    []*dto.MetricFamily
	whole   []*dto.MetricFamily // one, or none when the pieces do not fit together
	failure error
	written map[expfmt.Format][]byte
}

// newFamily puts the pieces together. Each part has checked its own.
func newFamily(from []*dto.MetricFamily) *family {
	f := &family{from: from, whole: from, written: map[expfmt.Format][]byte{}}
	if len(from) > 1 {
		var all prometheus.Gatherers
		for i := range from {
			all = append(all, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return from[i : i+1], nil }))
		}
		f.whole, f.failure = all.Gather()
	}
	return f
}

// in writes the family in a format.
func (f *family) in(format expfmt.Format) ([]byte, error) {
	if text, ok := f.written[format]; ok {
		return text, nil
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, format)
	for _, one := range f.whole {
		if err := encoder.Encode(one); err != nil {
			return nil, fmt.Errorf("write metric %s: %w", one.GetName(), err)
		}
	}
	f.written[format] = text.Bytes()
	return text.Bytes(), nil
}
