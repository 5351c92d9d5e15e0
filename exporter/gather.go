package exporter

import (
	"cmp"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// beside gathers from registries that share no metric. Each has checked its own
// metrics; prometheus.Gatherers would check them all once more, which takes a
// third of a scrape.
type beside []prometheus.Gatherer

// Gather implements prometheus.Gatherer. Registries that share a metric after
// all are merged the slow way.
func (g beside) Gather() ([]*dto.MetricFamily, error) {
	var all []*dto.MetricFamily
	var failures []error
	for _, one := range g {
		families, err := one.Gather()
		all, failures = append(all, families...), append(failures, err)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for i := 1; i < len(all); i++ {
		if all[i].GetName() == all[i-1].GetName() {
			return prometheus.Gatherers(g).Gather()
		}
	}
	return all, errors.Join(failures...)
}
