package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"idemscope/exporter"
	"idemscope/internal/answer"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/verdict"
)

// findingsPerSecond is the budget of one run where the configuration has none.
const findingsPerSecond = 20

// FindingsOptions describe one search for findings from the command line.
type FindingsOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Flow and Verdict narrow the list down; they may be empty.
	Flow, Verdict string
	// JSON prints the list as the API gives it.
	JSON bool
	// Language of the sentences.
	Language flow.Language
	// Logger is mandatory.
	Logger *slog.Logger
	// Out receives the list. Mandatory.
	Out io.Writer
}

// Findings reads the ledgers once from the lookback on, judges what is suspect
// in them, prints what it found, and returns the exit code: 0 nothing, 1
// something, 3 cannot tell. Errors are usage or configuration: exit code 2.
func Findings(ctx context.Context, o FindingsOptions) (exit int, err error) {
	c, err := config.Load(o.Config)
	if err != nil {
		return 0, err
	}
	if err := o.check(c.Catalog()); err != nil {
		return 0, err
	}
	s, err := openStores(c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	search, err := s.search(c, o)
	if err != nil {
		return 0, err
	}
	found := search.FindOnce(ctx)
	list := answer.Filter{Flow: o.Flow, Verdict: verdict.Code(o.Verdict)}.Select(found.List)
	if o.JSON {
		err = printJSON(o.Out, found.JSON(list, len(list), "", o.Language, nil))
	} else {
		err = printFindings(found, list, o)
	}
	return findingsExit(list, found.Unread), err
}

// check refuses names that nothing has: an empty list would be a wrong answer.
func (o FindingsOptions) check(flows []flow.Flow) error {
	if _, known := flow.NewCatalog(flows).Named(o.Flow); o.Flow != "" && !known {
		var names []string
		for _, f := range flows {
			names = append(names, f.Name)
		}
		return fmt.Errorf("there is no flow %q; known flows: %s", o.Flow, strings.Join(names, ", "))
	}
	if o.Verdict != "" && !slices.Contains(verdict.Codes(), verdict.Code(o.Verdict)) {
		var codes []string
		for _, c := range verdict.Codes() {
			codes = append(codes, string(c))
		}
		return fmt.Errorf("there is no verdict %q; known verdicts: %s", o.Verdict, strings.Join(codes, ", "))
	}
	return nil
}

// search sets up an exporter that reads only the ledgers that are asked for.
func (s *stores) search(c *config.Config, o FindingsOptions) (*exporter.Exporter, error) {
	desk, err := s.desk(c)
	if err != nil {
		return nil, err
	}
	flows, ledgers := s.catalog.Flows(), s.ledgers
	if asked, ok := s.catalog.Named(o.Flow); ok {
		// All flows of that ledger: which of them takes a record depends on the others.
		flows = slices.DeleteFunc(flows, func(f flow.Flow) bool { return f.Ledger != asked.Ledger })
		ledgers = map[string]*ledger.Ledger{asked.Ledger: s.ledgers[asked.Ledger]}
	}
	budget := c.Exporter.Findings.PerSecond
	if budget == 0 {
		budget = findingsPerSecond
	}
	return exporter.New(exporter.Options{
		Flows: flows, Ledgers: ledgers, Brokers: as[exporter.Broker](s.brokers),
		Interval: c.Exporter.Interval, Lookback: c.Exporter.Lookback,
		Judge: desk.Answer, FindingsPerSecond: budget, Logger: o.Logger,
	})
}

// findingsExit is that of the worst finding; a problem outweighs what is unknown.
func findingsExit(list []answer.Finding, unread bool) int {
	unsure := 0
	for _, f := range list {
		if f.Severity == verdict.Unsure {
			unsure++
		}
	}
	switch {
	case len(list) > unsure:
		return 1
	case unread || unsure > 0:
		return 3
	}
	return 0
}

func printFindings(found answer.Findings, list []answer.Finding, o FindingsOptions) error {
	say := func(t flow.Text) string { return t.In(o.Language) }
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, f := range list {
		age := flow.T("?", "？")
		if known, ok := f.Age(found.At); ok {
			age = flow.Span(known)
		}
		fmt.Fprintf(table, "%s\t[%s]\t%s\t%s / %s\t%s\t%s\n", strings.ToUpper(string(f.Code)), f.Severity, f.Flow,
			flow.Visible(f.Key.BizType), short(flow.Visible(f.Key.BizID)), say(age), say(f.Sentence))
	}
	_ = table.Flush()
	if len(list) == 0 {
		fmt.Fprintln(&out, say(flow.T("Nothing found.", "未发现问题。")))
	}
	fmt.Fprintln(&out)
	if found.Pending > 0 {
		fmt.Fprintln(&out, say(flow.T("%d suspects could not be judged.", "有 %d 个可疑项未能判断。", found.Pending)))
	}
	fmt.Fprintln(&out, say(flow.T("Looked through:", "检查范围：")))
	for _, c := range found.Coverage {
		fmt.Fprintf(&out, "  - %s\n", say(c))
	}
	_, err := io.WriteString(o.Out, out.String())
	return err
}

// listFindings is the exporter's list; nil when the configuration turns it off.
func listFindings(c *config.Config, e *exporter.Exporter) func() answer.Findings {
	if c.Exporter.Findings.PerSecond == 0 {
		return nil
	}
	return e.Findings
}
