package console

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// askedFindings is one request for findings, as the address words it.
type askedFindings struct {
	all    answer.Findings
	filter answer.Filter
	order  answer.Order
	// older is how old a finding must be known to be; 0 for any.
	older time.Duration
	// list is what passes the filter, in the order that was asked for; page is the
	// part of it that is shown.
	list, page []answer.Finding
	after      string
	next       string
	// flat: the address asks for the list, not for its groups.
	flat bool
}

// findingFilters are the parameters that narrow the list down, and findingOrders
// those that say how it is shown.
var (
	findingFilters = []string{"flow", "verdict", "biz_type", "layer", "severity", "older"}
	findingOrders  = []string{"sort", "limit"}
)

// askFindings reads the filter and the order, and applies them.
func (c *console) askFindings(v visit) (askedFindings, error) {
	if c.Findings == nil {
		return askedFindings{}, findingsOff()
	}
	texts := map[string]string{}
	var asked askedFindings
	for _, name := range slices.Concat(findingFilters, findingOrders, []string{"after"}) {
		text, given, err := v.text(name)
		if err != nil {
			return askedFindings{}, err
		}
		texts[name] = text
		if given && name == "biz_type" {
			asked.filter.BizType = &text
		}
	}
	if err := asked.read(c, v, texts); err != nil {
		return askedFindings{}, err
	}
	limit := defaultFindings
	if texts["limit"] != "" {
		n, err := strconv.Atoi(texts["limit"])
		if err != nil || n < 1 || n > maxFindings {
			return askedFindings{}, badLimit()
		}
		limit = n
	}
	asked.all = c.Findings()
	if asked.older > 0 {
		asked.filter.Before = asked.all.At.Add(-asked.older)
	}
	asked.list = asked.filter.Select(asked.all.List)
	asked.order.Sort(asked.list)
	var err error
	asked.page, asked.next, err = asked.order.Page(asked.list, asked.after, limit)
	if errors.Is(err, answer.ErrMark) {
		return askedFindings{}, badMark()
	}
	return asked, err
}

// read takes the parameters over, and refuses what is not known.
func (a *askedFindings) read(c *console, v visit, texts map[string]string) error {
	a.filter.Flow, a.filter.Verdict, a.after = texts["flow"], verdict.Code(texts["verdict"]), texts["after"]
	a.filter.Layer, a.filter.Severity = flow.Layer(texts["layer"]), verdict.Severity(texts["severity"])
	a.order = answer.ByWorst
	if texts["sort"] != "" {
		a.order = answer.Order(texts["sort"])
	}
	a.flat = texts["verdict"] != "" || texts["sort"] != "" || texts["limit"] != "" || texts["after"] != ""
	var err error
	if a.older, err = parseOlder(texts["older"]); err != nil {
		return badOlder()
	}
	switch {
	case a.filter.Flow != "" && !slices.ContainsFunc(c.Flows, func(f flow.Flow) bool { return f.Name == a.filter.Flow }):
		return noSuchFlow(v, c.Flows, a.filter.Flow)
	case a.filter.Verdict != "" && !slices.Contains(verdict.Codes(), a.filter.Verdict):
		return noSuchVerdict(v, texts["verdict"])
	case a.filter.Layer != "" && !slices.Contains(findingLayers, a.filter.Layer):
		return noSuchChoice(v, "layer", texts["layer"], findingLayers)
	case a.filter.Severity != "" && !slices.Contains(findingSeverities, a.filter.Severity):
		return noSuchChoice(v, "severity", texts["severity"], findingSeverities)
	case !slices.Contains(answer.Orders(), a.order):
		return noSuchChoice(v, "sort", texts["sort"], answer.Orders())
	}
	return nil
}

var (
	findingLayers     = []flow.Layer{flow.LayerBroker, flow.LayerRedis, flow.LayerMySQL, flow.LayerNone}
	findingSeverities = []verdict.Severity{verdict.Critical, verdict.Warning, verdict.Unsure}
	// findingAges are the ages that the filter offers; the address takes any.
	findingAges = []string{"5m", "1h", "1d", "7d"}
)

// parseOlder reads a length of time such as 90s, 5m, 1h or 7d; empty means none.
func parseOlder(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 || n > 36500 {
			return 0, errors.New("not a number of days")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("not a length of time")
	}
	return d, err
}

// findingValues repeats the filter and the order as they were asked.
func findingValues(v visit) url.Values {
	values := url.Values{}
	for _, name := range slices.Concat(findingFilters, findingOrders) {
		if given, ok := v.values[name]; ok && (given[0] != "" || name == "biz_type") {
			values[name] = given
		}
	}
	return values
}
