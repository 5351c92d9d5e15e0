package exporter

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// everything is what counts and what is read, for one registry that checks it all.
func everything(sums *sums, read *snapshots) []prometheus.Collector {
	return slices.Concat(sums.byType(), sums.rest(), []prometheus.Collector{read})
}

// samples maps each series, written as in the exposition, to its value; for a
// histogram it has the series NAME_count and NAME_sum.
type samples map[string]float64

// gather reads what a scrape would see, through the text format.
func gather(t testing.TB, g prometheus.Gatherer) samples {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, text.Bytes())
}

// parse reads the text format. A series that stands there twice fails the test.
func parse(t testing.TB, text []byte) samples {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("exposition is not valid: %v", err)
	}
	found := samples{}
	add := func(series string, value float64) {
		if _, twice := found[series]; twice {
			t.Fatalf("series %s stands there twice", series)
		}
		found[series] = value
	}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			suffix := ""
			if len(labels) > 0 {
				suffix = "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.Histogram != nil:
				add(name+"_count"+suffix, float64(m.Histogram.GetSampleCount()))
				add(name+"_sum"+suffix, m.Histogram.GetSampleSum())
			case m.Counter != nil:
				add(name+suffix, m.Counter.GetValue())
			case m.Gauge != nil:
				add(name+suffix, m.Gauge.GetValue())
			}
		}
	}
	return found
}

// only keeps the series whose name begins with one of the prefixes.
func (s samples) only(prefixes ...string) samples {
	kept := samples{}
	for series, value := range s {
		for _, p := range prefixes {
			if strings.HasPrefix(series, p) {
				kept[series] = value
			}
		}
	}
	return kept
}

// want compares series with their expected values; further series are fine.
func (s samples) want(t testing.TB, expected samples) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(expected)) {
		if value, there := s[series]; !there {
			t.Errorf("%s is absent, want %v", series, expected[series])
		} else if value != expected[series] {
			t.Errorf("%s is %v, want %v", series, value, expected[series])
		}
	}
}

// has reports whether all the series are there with these values.
func (s samples) has(expected samples) bool {
	for series, want := range expected {
		if value, there := s[series]; !there || value != want {
			return false
		}
	}
	return true
}

// absent fails for each series that begins with a prefix.
func (s samples) absent(t testing.TB, prefixes ...string) {
	t.Helper()
	for series := range s.only(prefixes...) {
		t.Errorf("%s is there, want it absent", series)
	}
}

// lint fails the test for each fault that promlint finds.
func lint(t testing.TB, g prometheus.Gatherer) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
