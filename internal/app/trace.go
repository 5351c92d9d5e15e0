package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"idemscope/console"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/link"
	"idemscope/internal/broker/rabbitmq/trace"
	"idemscope/internal/config"
	"idemscope/internal/flow"
)

// shownCounts is how many keys a trace lists.
const shownCounts = 20

// newTrace sets up the trace of a broker, with the manager that switches tracing.
func newTrace(c *config.Config, b config.Broker, s *stores, logger *slog.Logger) (*trace.Trace, *rabbitmq.Broker, error) {
	at := c.At("brokers." + b.Name + ".trace")
	manager, err := rabbitmq.New(rabbitmq.Options{
		Name: b.Name, Management: b.Management, Vhost: b.Vhost, User: b.Trace.User, Password: b.Trace.Password.Reveal(),
		TLS: b.TLS.Client(), Timeout: max(c.Console.LookupTimeout, exporterTimeout),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	order, err := orderFor(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	own := []string{b.User, b.Trace.User}
	if t := s.taps[b.Name]; t != nil {
		own = append(own, t.User())
	}
	t, err := trace.New(trace.Options{
		Broker: b.Name, AMQP: b.Trace.AMQP.Reveal(), TLS: b.TLS.Client(), Manager: manager, Flows: s.catalog.Flows(),
		OwnUsers: own, Guard: guardCommand, Order: order, Logger: logger,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	return t, manager, nil
}

// guardCommand runs this very program as the guard of a trace. It inherits
// nothing: all that it needs comes through a pipe.
func guardCommand() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "rabbitmq", "trace-guard")
	cmd.Env = []string{}
	return cmd, nil
}

// orderFor is what the guard needs to reach the management API.
func orderFor(b config.Broker) (trace.Order, error) {
	order := trace.Order{Management: b.Management, Vhost: b.Vhost, User: b.Trace.User, Password: b.Trace.Password.Reveal()}
	if b.TLS == nil {
		return order, nil
	}
	order.ServerName, order.Insecure = b.TLS.ServerName, b.TLS.InsecureSkipVerify
	for path, to := range map[string]*string{b.TLS.CAFile: &order.CA, b.TLS.CertFile: &order.Cert, b.TLS.KeyFile: &order.Key} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return order, err
		}
		*to = string(text)
	}
	return order, nil
}

// TraceGuard is the life of the guard process.
func TraceGuard(in io.Reader, out io.Writer) error { return trace.Guard(in, out) }

// TraceOptions describe one armed trace from the command line.
type TraceOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Broker is the configured name; empty when only one broker has a trace.
	Broker string
	// For is how long tracing is on.
	For time.Duration
	// Yes: the operator has read the cost.
	Yes bool
	// JSON prints the counts for programs.
	JSON bool
	// Language of the sentences.
	Language flow.Language
	// Logger is mandatory.
	Logger *slog.Logger
	// Out receives cost, countdown and counts. Mandatory.
	Out io.Writer
}

// Trace arms a trace, waits for its end, prints the counts, and returns the exit
// code: 0 fine, 1 it ended early or tracing is still on, 3 it could not be armed,
// 4 the cost was not agreed to. Errors are usage or configuration: exit code 2.
func Trace(ctx context.Context, o TraceOptions) (exit int, err error) {
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	name, err := chooseBroker(o.Broker, "trace", c, func(b config.Broker) bool { return b.Trace.AMQP != "" })
	if err != nil {
		return 0, err
	}
	o.Broker = name
	var chosen config.Broker
	for _, b := range c.Brokers {
		if b.Name == name {
			chosen = b
		}
	}
	t, manager, err := newTrace(c, chosen, s, o.Logger)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	say := func(text flow.Text) { fmt.Fprintln(o.Out, text.In(o.Language)) }
	if !o.JSON || !o.Yes {
		say(flow.T("Tracing of vhost %s of broker %s for %v:", "对 Broker %[2]s 的 vhost %[1]s 追踪 %[3]v：", flow.Visible(chosen.Vhost), name, flow.Span(o.For)))
		for _, cost := range trace.Cost {
			say(flow.T("  - %s", "  - %s", cost))
		}
	}
	if !o.Yes {
		say(flow.T("Nothing was changed. If that is agreed to, add --yes.", "没有做任何更改。确认接受请加 --yes。"))
		return 4, nil
	}
	if err := t.Arm(ctx, o.For); err != nil {
		say(flow.T("not armed: %s", "未开启：%s", link.Words(err)))
		return 3, nil
	}
	countDown(t, o)
	return traceResult(t, o)
}

// countDown shows what is left until the trace has ended: on a terminal in one
// line, elsewhere in a line now and then.
func countDown(t *trace.Trace, o TraceOptions) {
	every, end := 10*time.Second, "\n"
	if file, ok := o.Out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			every, end = time.Second, "\r"
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s := t.Status()
		if left := time.Until(s.Until).Round(time.Second); !o.JSON && s.Armed && left > 0 {
			fmt.Fprintf(o.Out, "%-60s%s", flow.T("tracing is on for %v more; %d deliveries", "追踪还剩 %v；%d 次投递", flow.Span(left), s.Deliveries).In(o.Language), end)
		}
		select {
		case <-t.Done():
			return
		case <-tick.C:
		}
	}
}

func traceResult(t *trace.Trace, o TraceOptions) (exit int, err error) {
	s, counts := t.Status(), t.Counts(shownCounts)
	if !s.Fault.Empty() {
		exit = 1
	}
	if o.JSON {
		return exit, printJSON(o.Out, console.NewTraceJSON(traceState(o.Broker, s, counts), o.Language))
	}
	var out strings.Builder
	say := func(text flow.Text) { fmt.Fprintln(&out, text.In(o.Language)) }
	if s.Fault.Empty() {
		say(flow.T("\nTracing is off again.", "\n追踪已关闭。"))
	} else {
		say(flow.T("\n%s", "\n%s", s.Fault))
	}
	if s.Lossy {
		say(flow.T("Copies came too fast: the counts are too low.", "副本到达过快：计数偏低。"))
	}
	say(flow.T("%d deliveries, %d of them without a key that a flow knows. Most delivered:", "共 %d 次投递，其中 %d 次没有流程认识的键。投递最多的：", s.Deliveries, s.Unread))
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, n := range counts {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", n.Flow, flow.Visible(n.Key.BizType), short(flow.Visible(n.Key.BizID)),
			flow.T("%d deliveries, %d redelivered", "投递 %d 次，其中重投 %d 次", n.Deliveries, n.Redelivered).In(o.Language))
	}
	_ = table.Flush()
	for _, l := range trace.Limits {
		say(flow.T("  - %s", "  - %s", l))
	}
	_, err = io.WriteString(o.Out, out.String())
	return exit, err
}

// tracing shows the traces to the console.
type tracing struct{ *events }

// Brokers lists the brokers that can be traced.
func (t tracing) Brokers() []string { return t.order }

// State is where the trace of a broker stands.
func (t tracing) State(broker string) console.TraceState {
	one := t.traces[broker]
	return traceState(broker, one.Status(), one.Counts(shownCounts))
}

// Arm turns tracing on. It goes on after the request that asked for it.
func (t tracing) Arm(_ context.Context, broker string, d time.Duration) *flow.Text {
	if err := t.traces[broker].Arm(t.life, d); err != nil {
		words := link.Words(err)
		return &words
	}
	return nil
}

// Disarm turns tracing off.
func (t tracing) Disarm(broker string) { t.traces[broker].Disarm() }

func traceState(broker string, s trace.Status, counts []trace.Count) console.TraceState {
	state := console.TraceState{
		Broker: broker, Armed: s.Armed, Since: s.Since, Until: s.Until, Deliveries: s.Deliveries, Unread: s.Unread, Lossy: s.Lossy, Fault: s.Fault,
		Cost: trace.Cost, Limits: trace.Limits, MinTime: trace.MinTime, MaxTime: trace.MaxTime,
	}
	for _, n := range counts {
		state.Counts = append(state.Counts, console.TraceCount{Place: flow.Place{Flow: n.Flow, Key: n.Key}, Deliveries: n.Deliveries, Redelivered: n.Redelivered})
	}
	return state
}
