package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Uids of the dashboards, which their links and file names use.
const (
	overviewUID = "idemscope-overview"
	flowUID     = "idemscope-flow"
	cleanupUID  = "idemscope-cleanup"
	itselfUID   = "idemscope-exporter"
)

const tag = "idemscope"

// source is what the variable datasource names.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// builder makes a dashboard of the classic model, which every Grafana in use can import.
//
//lint:ignore SA1019 only the newest Grafana reads the model that replaces it
type builder = dashboard.DashboardBuilder

// frame is what all dashboards have in common.
func frame(uid, title, description string) *builder {
	//lint:ignore SA1019 as above
	return dashboard.NewDashboardBuilder(title).
		Uid(uid).
		Description(description).
		Tags([]string{tag}).
		Time("now-3h", "now").
		Refresh("30s").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		Link(dashboard.NewDashboardLinkBuilder("idemscope dashboards").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).IncludeVars(true).KeepTime(true)).
		Link(dashboard.NewDashboardLinkBuilder("Console").Type(dashboard.DashboardLinkTypeLink).Icon("external link").
			Tooltip("Look one key up").Url("${console}/").TargetBlank(true)).
		Link(dashboard.NewDashboardLinkBuilder("Findings").Type(dashboard.DashboardLinkTypeLink).Icon("bolt").
			Tooltip("Keys that need somebody").Url("${console}/findings").TargetBlank(true))
}

// console is the base URL of the console's links.
func console() *dashboard.TextBoxVariableBuilder {
	const here = "http://127.0.0.1:9877"
	return dashboard.NewTextBoxVariableBuilder("console").Label("Console").
		Description("Address of idemscope's console, without a slash at its end").
		DefaultValue(dashboard.StringOrMap{String: cog.ToPtr(here)}).
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: cog.ToPtr(here)},
			Value: dashboard.StringOrArrayOfString{String: cog.ToPtr(here)},
		})
}

// choice is a variable whose values a query gives; regex may be empty.
func choice(name, label, query, regex string) *dashboard.QueryVariableBuilder {
	v := dashboard.NewQueryVariableBuilder(name).Label(label).
		Datasource(source()).
		Query(dashboard.StringOrMap{String: &query}).
		Definition(query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc)
	if regex != "" {
		v.Regex(regex)
	}
	return v
}

// all makes a variable take several values, at first all of them.
func all(v *dashboard.QueryVariableBuilder) *dashboard.QueryVariableBuilder {
	return v.Multi(true).IncludeAll(true).Current(dashboard.VariableOption{
		Selected: cog.ToPtr(true),
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	})
}

// flows and bizTypes are the variables that narrow a dashboard. The metrics of consumers carry a biz_type and no flow; which
// flow it belongs to is told by idem_flow_info. Types that no flow takes stay in the list whatever the flow.
func flows() *dashboard.QueryVariableBuilder {
	return choice("flow", "Flow", `label_values(`+belongs+`, flow)`, "")
}

func bizTypes() *dashboard.QueryVariableBuilder {
	return choice("biz_type", "biz_type", `query_result(count by (biz_type) (`+belongs+`{flow=~"$flow"})`+
		` or count by (biz_type) (idem_records_created_total unless on (biz_type) `+belongs+`))`, `/biz_type="([^"]*)"/`)
}

// belongs has one series per biz_type of each flow.
const belongs = "idem_flow_info"
