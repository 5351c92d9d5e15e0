package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Units of Grafana.
const (
	number    = "short"
	perSecond = "cps"
	share     = "percentunit"
	seconds   = "s"
	size      = "bytes"
)

// query is one PromQL expression with the name of its series.
type query struct{ expr, legend string }

// about is what a panel says of itself.
type about struct {
	title, description, unit string
	width                    uint32 // of 24
}

// alarm is a pair of values from which a figure is shown in orange and in red; a nil one is left out.
type alarm struct{ orange, red *float64 }

func from(orange, red float64) alarm { return alarm{&orange, &red} }
func redFrom(red float64) alarm      { return alarm{red: &red} }
func orangeFrom(v float64) alarm     { return alarm{orange: &v} }

func (a alarm) steps() *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	if a.orange != nil {
		steps = append(steps, dashboard.Threshold{Value: a.orange, Color: "orange"})
	}
	if a.red != nil {
		steps = append(steps, dashboard.Threshold{Value: a.red, Color: "red"})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

func target(i int, q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source()).Expr(q.expr).LegendFormat(q.legend).RefId(string(rune('A' + i)))
}

// lines draws its queries over time.
func lines(a about, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(a.title).Description(a.description).Unit(a.unit).Span(a.width).Height(8).
		Datasource(source()).
		Min(0).
		LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p.WithTarget(target(i, q).Range())
	}
	return p
}

// marked adds dashed lines at the values of the alarm.
func marked(p *timeseries.PanelBuilder, a alarm) *timeseries.PanelBuilder {
	return p.Thresholds(a.steps()).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
}

// stacked piles the series up.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// ttlLegend begins the names of the series that are drawn as limits.
const ttlLegend = "lock TTL"

// underTTL draws the series of lock TTLs as red dashed lines.
func underTTL(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.OverrideByRegexp("/^"+ttlLegend+"/", []dashboard.DynamicConfigValue{
		{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": "red"}},
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
		{Id: "custom.lineWidth", Value: 2},
		{Id: "custom.fillOpacity", Value: 0},
	})
}

// figure shows the latest value of one query.
func figure(a about, limits alarm, q query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(a.title).Description(a.description).Unit(a.unit).Span(a.width).Height(4).
		Datasource(source()).
		Thresholds(limits.steps()).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeArea).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		WithTarget(target(0, q).Range())
}

// link is one that opens beside the dashboard.
func link(title, url string) cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url(url).TargetBlank(true)
}

func links(l ...cog.Builder[dashboard.DashboardLink]) []cog.Builder[dashboard.DashboardLink] {
	return l
}
