package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/broker/rabbitmq/tap"
	"idemscope/internal/config"
	"idemscope/internal/flow"
)

// openTaps sets up the taps. A look-up reads them anew each time; the service
// follows them instead.
func (s *stores) openTaps(c *config.Config) error {
	for _, b := range c.Brokers {
		if b.Tap.AMQP == "" {
			continue
		}
		opened, err := tap.New(tap.Options{
			Broker: b.Name, AMQP: b.Tap.AMQP.Reveal(), TLS: b.TLS.Client(), Stream: b.Tap.Stream, DeadLetters: b.Tap.DeadLetters,
			Flows: s.catalog.Flows(), Manager: s.brokers[b.Name],
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("brokers."+b.Name+".tap"), err)
		}
		s.taps[b.Name] = opened
		s.tapped[b.Name] = opened.NewScanner()
	}
	return nil
}

// TapAction is what to do about a tap.
type TapAction string

// The three things to do about a tap.
const (
	TapPlan   TapAction = "plan"
	TapApply  TapAction = "apply"
	TapRemove TapAction = "remove"
)

// TapOptions describe one change of a tap, or its plan.
type TapOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Broker is the configured name; empty when only one broker has a tap.
	Broker string
	// Action is mandatory.
	Action TapAction
	// Execute lets TapRemove change something.
	Execute bool
	// MaxAge and MaxBytes bound the stream. Mandatory but for TapRemove.
	MaxAge   time.Duration
	MaxBytes int64
	// JSON prints the plan for programs.
	JSON bool
	// Language of the sentences.
	Language flow.Language
	// Out receives the plan. Mandatory.
	Out io.Writer
}

// Tap plans, makes or removes a tap and returns the exit code: 0 fine, 1 only a
// part was done, 3 the broker could not be read, or the plan cannot be carried
// out. Errors are usage or configuration: exit code 2.
func Tap(ctx context.Context, o TapOptions) (exit int, err error) {
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	name, err := chooseBroker(o.Broker, "tap", c, func(b config.Broker) bool { return b.Tap.AMQP != "" })
	if err != nil {
		return 0, err
	}
	t := s.taps[name]
	var plan tap.Plan
	if o.Action == TapRemove {
		plan, err = t.PlanRemoval(ctx)
	} else {
		plan, err = t.Plan(ctx, tap.Size{MaxAge: o.MaxAge, MaxBytes: o.MaxBytes})
	}
	if err != nil {
		_, err = fmt.Fprintln(o.Out, link.Words(err).In(o.Language))
		return 3, err
	}
	if o.JSON {
		err = printJSON(o.Out, planJSON(plan, o.Language))
	} else {
		err = printPlan(plan, name, o)
	}
	if err != nil || o.Action == TapPlan || o.Action == TapRemove && !o.Execute {
		return 0, err
	}
	return applyPlan(ctx, t, plan, o)
}

func applyPlan(ctx context.Context, t *tap.Tap, plan tap.Plan, o TapOptions) (exit int, err error) {
	say := func(text flow.Text) {
		if !o.JSON {
			fmt.Fprintln(o.Out, text.In(o.Language))
		}
	}
	if err := t.Apply(ctx, plan, func(s tap.Step) { say(flow.T("done: %s", "已完成：%s", s.Text)) }); err != nil {
		_, err = fmt.Fprintln(o.Out, flow.T("failed: %s\nApply again to go on from here.", "失败：%s\n再次执行即可从此处继续。", link.Words(err)).In(o.Language))
		return 1, err
	}
	say(flow.T("All is done.", "全部完成。"))
	return 0, nil
}

// chooseBroker returns the named broker, or the only one of those that can.
func chooseBroker(name, what string, c *config.Config, can func(config.Broker) bool) (string, error) {
	var able []string
	for _, b := range c.Brokers {
		if can(b) {
			able = append(able, b.Name)
		}
		if b.Name == name && !can(b) {
			return "", fmt.Errorf("%s: brokers.%s has no %s; add %s: {amqp: ...} to it", c.At("brokers."+name), name, what, what)
		}
		if b.Name == name {
			return name, nil
		}
	}
	switch {
	case name != "":
		return "", fmt.Errorf("there is no broker %q", name)
	case len(able) == 0:
		return "", fmt.Errorf("%s: no broker has a %s; add %s: {amqp: ...} to one", c.At("brokers"), what, what)
	case len(able) > 1:
		return "", fmt.Errorf("several brokers have a %s; choose one with --broker: %s", what, strings.Join(able, ", "))
	}
	return able[0], nil
}

func printPlan(p tap.Plan, broker string, o TapOptions) error {
	var out strings.Builder
	say := func(t flow.Text) { fmt.Fprintln(&out, t.In(o.Language)) }
	say(flow.T("Broker %s, RabbitMQ %s", "Broker %s，RabbitMQ %s", broker, p.Version))
	for i, s := range p.Steps {
		state := flow.T("to do", "待执行")
		if s.Done {
			state = flow.T("is there", "已存在")
		}
		say(flow.T("%3d. [%s] %s", "%3d. [%s] %s", i+1, state, s.Text))
		if !s.Effect.Empty() {
			say(flow.T("     %s", "     %s", s.Effect))
		}
	}
	if !p.Pending() {
		say(flow.T("Nothing is left to do.", "没有需要执行的步骤。"))
	}
	if len(p.Blind) > 0 {
		say(flow.T("\nThe tap will not see:", "\n采集看不到："))
	}
	for _, b := range p.Blind {
		say(flow.T("  - flow %s: %s", "  - 流程 %s：%s", b.Flow, b.Text))
	}
	if len(p.Notes) > 0 {
		say(flow.T("\nTo know:", "\n须知："))
	}
	for _, n := range p.Notes {
		say(flow.T("  - %s", "  - %s", n))
	}
	switch {
	case o.Action == TapPlan && p.Pending():
		say(flow.T("\nNothing was changed. To make it: idemscope rabbitmq tap apply, with the same options.", "\n没有做任何更改。执行：idemscope rabbitmq tap apply（使用相同选项）。"))
	case o.Action == TapRemove && p.Pending() && !o.Execute:
		say(flow.T("\nNothing was changed. What the stream holds is lost with it; to go on: --execute", "\n没有做任何更改。stream 中的内容会随之丢失；确认执行请加 --execute"))
	}
	_, err := io.WriteString(o.Out, out.String())
	return err
}

func planJSON(p tap.Plan, lang flow.Language) any {
	type step struct {
		Text   string `json:"text"`
		Effect string `json:"effect,omitempty"`
		Done   bool   `json:"done"`
	}
	type blind struct {
		Flow string `json:"flow"`
		Text string `json:"text"`
	}
	answer := struct {
		Version string   `json:"version"`
		Steps   []step   `json:"steps"`
		Blind   []blind  `json:"blind"`
		Notes   []string `json:"notes"`
	}{Version: p.Version.String(), Steps: []step{}, Blind: []blind{}, Notes: []string{}}
	for _, s := range p.Steps {
		answer.Steps = append(answer.Steps, step{s.Text.In(lang), s.Effect.In(lang), s.Done})
	}
	for _, b := range p.Blind {
		answer.Blind = append(answer.Blind, blind{b.Flow, b.Text.In(lang)})
	}
	for _, n := range p.Notes {
		answer.Notes = append(answer.Notes, n.In(lang))
	}
	return answer
}
