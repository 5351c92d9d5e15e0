package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// LookupOptions describe one look-up from the command line.
type LookupOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Words are BIZ_TYPE BIZ_ID, or one text to search for. Mandatory.
	Words []string
	// Flow narrows a biz_type that several flows carry; it may be empty.
	Flow string
	// JSON prints the answer as the API gives it.
	JSON bool
	// Markdown prints a report for a ticket or a chat, one for each key.
	Markdown bool
	// Language of the sentences.
	Language flow.Language
	// Out receives the answer. Mandatory.
	Out io.Writer
}

// Lookup answers one question and returns the exit code: 0 fine, 1 a problem
// was found, 3 cannot tell. Errors are usage or configuration: exit code 2.
func Lookup(ctx context.Context, o LookupOptions) (exit int, err error) {
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	desk, err := s.desk(c)
	if err != nil {
		return 0, err
	}
	result, err := ask(ctx, desk, o)
	if err != nil {
		return 0, err
	}
	return exitCode(result.Answers), printResult(result, o, c.TimeZone)
}

func ask(ctx context.Context, desk *answer.Desk, o LookupOptions) (answer.Result, error) {
	if len(o.Words) == 1 {
		return desk.Search(ctx, o.Words[0])
	}
	places, err := desk.Places(flow.Key{BizType: o.Words[0], BizID: o.Words[1]}, o.Flow)
	if err != nil {
		return answer.Result{}, err
	}
	var result answer.Result
	for _, p := range places {
		a, err := desk.Answer(ctx, p)
		if err != nil {
			return answer.Result{}, err
		}
		result.Answers = append(result.Answers, a)
	}
	return result, nil
}

// exitCode is that of the worst answer; a problem found outweighs one unknown.
func exitCode(answers []answer.Answer) int {
	exit := 0
	for _, a := range answers {
		switch a.Verdict.Severity {
		case verdict.Warning, verdict.Critical:
			return 1
		case verdict.Unsure:
			exit = 3
		}
	}
	return exit
}

func printResult(r answer.Result, o LookupOptions, zone *time.Location) error {
	switch {
	case o.JSON && len(r.Answers) == 1:
		return printJSON(o.Out, r.Answers[0].JSON(o.Language))
	case o.JSON:
		return printJSON(o.Out, r.JSON(o.Language))
	case o.Markdown:
		return printReports(r, o, zone)
	case len(r.Answers) == 1:
		if err := r.Answers[0].WriteText(o.Out, o.Language, zone); err != nil {
			return err
		}
		return printOffers(r, o)
	}
	if err := printList(r, o); err != nil {
		return err
	}
	return printOffers(r, o)
}

// printReports prints one report for each key, with a rule between them.
func printReports(r answer.Result, o LookupOptions, zone *time.Location) error {
	var reports []string
	for _, a := range r.Answers {
		reports = append(reports, a.Markdown(o.Language, zone))
	}
	_, err := io.WriteString(o.Out, strings.Join(reports, "\n---\n\n"))
	return err
}

// printOffers prints what else the text could mean.
func printOffers(r answer.Result, o LookupOptions) error {
	var lines []string
	for _, offer := range r.Offers {
		title := offer.Why.In(o.Language)
		if offer.Query != "" {
			title += ": " + flow.Visible(offer.Query)
		}
		lines = append(lines, title)
		for _, a := range offer.Answers {
			lines = append(lines, listed(a, o))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	head := flow.T("Other readings of this text; none of them stands for it:", "这段文本的其他读法；它们都不能代替它：").In(o.Language)
	_, err := fmt.Fprintln(o.Out, head+"\n"+strings.Join(lines, "\n"))
	return err
}

// listed is one key on one line.
func listed(a answer.Answer, o LookupOptions) string {
	return fmt.Sprintf("  %-40s %s [%s] %s", a.Key, strings.ToUpper(string(a.Verdict.Code)), a.Verdict.Severity, a.Verdict.Sentence.In(o.Language))
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printList prints one line for each key that the text could mean.
func printList(r answer.Result, o LookupOptions) error {
	title := flow.T("%d keys could be meant; look one up by BIZ_TYPE BIZ_ID:", "可能指 %d 个键；请用 BIZ_TYPE BIZ_ID 查询其中一个：", len(r.Answers))
	if len(r.Answers) == 0 {
		title = flow.T("No flow names a biz_type to look for this id under; give BIZ_TYPE BIZ_ID.", "没有流程列出业务类型，无法按该 ID 查找；请给出 BIZ_TYPE BIZ_ID。")
	}
	lines := []string{title.In(o.Language)}
	for _, a := range r.Answers {
		lines = append(lines, listed(a, o))
	}
	if r.Cut {
		lines = append(lines, flow.T("  ... more biz_types exist than were asked.", "  …… 还有未查询的业务类型。").In(o.Language))
	}
	_, err := fmt.Fprintln(o.Out, strings.Join(lines, "\n"))
	return err
}
