package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strings"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/broker/rabbitmq/replay"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// openAudit names the audit file. Nothing is made before the first attempt.
func (s *stores) openAudit(c *config.Config) error {
	log, err := audit.Open(c.Console.Audit)
	if err != nil {
		return fmt.Errorf("%s: %w", c.At("console.audit"), err)
	}
	s.audit = log
	if c.Console.Actions {
		s.acts = log
	}
	return nil
}

// actor sets up actions over the stores, each with the user that may change it.
// It is nil when actions are off.
func (s *stores) actor(c *config.Config, desk *answer.Desk, logger *slog.Logger) (*action.Actor, error) {
	if !c.Console.Actions {
		return nil, nil
	}
	hide, err := newMask(c)
	if err != nil {
		return nil, err
	}
	o := action.Options{
		Desk: desk.Raw(), Mask: hide.Text, Flows: s.catalog.Flows(), Journal: s.audit, Unfinished: action.FromLog(s.audit), Logger: logger,
		Redis: map[string]action.Redis{}, Ledgers: map[string]action.Records{}, Brokers: map[string]action.Replayer{},
	}
	for _, open := range []func(*config.Config, *action.Options) error{s.actOnRedis, s.actOnLedgers, s.actOnBrokers} {
		if err := open(c, &o); err != nil {
			return nil, err
		}
	}
	return action.New(o)
}

// actOnRedis opens every Redis once more: what is changed must not be sent twice.
func (s *stores) actOnRedis(c *config.Config, o *action.Options) error {
	for _, r := range c.Redis {
		options := redisOptions(c, r)
		options.Once = true
		if r.Act.User != "" {
			options.User, options.Password = r.Act.User, r.Act.Password.Reveal()
		}
		store, err := lockstore.New(options)
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("redis."+r.Name), err)
		}
		s.stops = append(s.stops, store.Close)
		o.Redis[r.Name] = action.Redis{Release: store.Release, Second: r.Act.User != ""}
	}
	return nil
}

func (s *stores) actOnLedgers(c *config.Config, o *action.Options) error {
	resetters := map[string]*ledger.Resetter{}
	for _, m := range c.MySQL {
		if m.Act.User == "" {
			continue
		}
		options := cleanupServer(c, m.Name)
		options.User, options.Password = m.Act.User, m.Act.Password.Reveal()
		resetter, err := ledger.NewResetter(options)
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("mysql."+m.Name+".act"), err)
		}
		s.stops = append(s.stops, resetter.Close)
		resetters[m.Name] = resetter
	}
	for _, l := range c.Ledgers {
		records := action.Records{Plan: s.ledgers[l.Name].PlanReset}
		if resetter := resetters[l.MySQL]; resetter != nil {
			records.Reset = resetter.Reset
		}
		o.Ledgers[l.Name] = records
	}
	return nil
}

func (s *stores) actOnBrokers(c *config.Config, o *action.Options) error {
	for _, b := range c.Brokers {
		if b.Replay == "" {
			continue
		}
		replayer, err := replay.New(replay.Options{
			Broker: b.Name, AMQP: b.Replay.Reveal(), TLS: b.TLS.Client(), Reader: s.brokers[b.Name], Flows: s.catalog.Flows(),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("brokers."+b.Name+".act"), err)
		}
		o.Brokers[b.Name] = replayer
	}
	return nil
}

// ActionOptions describe one action from the command line.
type ActionOptions struct {
	// Config is the path of the configuration file. Mandatory.
	Config string
	// Kind names the action. Mandatory.
	Kind string
	// BizType and BizID are the key. Mandatory, the id may be empty.
	BizType, BizID string
	// Flow narrows a biz_type that several flows carry; it may be empty.
	Flow string
	// Reason is kept in the audit file. Mandatory with Execute.
	Reason string
	// Execute does it; without it, only what would be done is shown.
	Execute bool
	// JSON prints what the API gives.
	JSON bool
	// Language of the sentences.
	Language flow.Language
	// Logger is mandatory.
	Logger *slog.Logger
	// Out receives the answer. Mandatory.
	Out io.Writer
}

// Action shows or does one action and returns the exit code: 0 done or allowed, 1
// there is nothing to do, 3 a store did not answer, 4 refused. Errors are usage or
// configuration: exit code 2.
func Action(ctx context.Context, o ActionOptions) (exit int, err error) {
	if o.Execute && strings.TrimSpace(o.Reason) == "" {
		return 0, errors.New("--reason is needed with --execute: it is kept in the audit file")
	}
	c, s, err := openConfigured(o.Config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	desk, err := s.desk(c)
	if err != nil {
		return 0, err
	}
	places, err := desk.Places(flow.Key{BizType: o.BizType, BizID: o.BizID}, o.Flow)
	if err != nil {
		return 0, err
	}
	if len(places) > 1 {
		return 0, fmt.Errorf("several flows carry biz_type %q, and each keeps its own records: choose one with --flow, of %s", o.BizType, flowNames(places))
	}
	actor, err := s.actor(c, desk, o.Logger)
	if err != nil {
		return 0, err
	}
	if actor == nil {
		return o.off()
	}
	ctx = access.With(ctx, operator())
	pre, err := actor.Precheck(ctx, places[0], action.Kind(o.Kind))
	if err != nil {
		return 0, err
	}
	if !o.Execute {
		return o.show(pre)
	}
	return o.tell(actor.Do(ctx, pre.Ticket, o.Reason))
}

// operator is whoever runs the program: who may read its configuration, which
// holds the credentials, may act.
func operator() access.Person {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return access.Person{Name: name, Roles: []access.Role{access.Viewer, access.Operator}}
}

func flowNames(places []flow.Place) string {
	var names []string
	for _, p := range places {
		names = append(names, p.Flow)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// off says that nothing can be changed.
func (o ActionOptions) off() (exit int, err error) {
	text := flow.T("actions are off: set console.actions: true in the configuration", "操作未启用：请在配置中设置 console.actions: true")
	if o.JSON {
		return 4, printJSON(o.Out, map[string]any{"allowed": false, "refusals": []action.RefusalJSON{{Code: "actions_off", Text: text.In(o.Language)}}})
	}
	_, err = fmt.Fprintln(o.Out, text.In(o.Language))
	return 4, err
}

// show prints what would be done.
func (o ActionOptions) show(p action.Precheck) (exit int, err error) {
	switch {
	case len(p.Refusals) > 0:
		exit = 4
	case !p.Nothing.Empty():
		exit = 1
	}
	if o.JSON {
		return exit, printJSON(o.Out, p.JSON(o.Language))
	}
	return exit, p.WriteText(o.Out, o.Language)
}

// tell prints what was done.
func (o ActionOptions) tell(r action.Result) (exit int, err error) {
	exit = map[audit.Outcome]int{audit.Done: 0, audit.Nothing: 1, audit.Failed: 3, audit.Refused: 4}[r.Outcome]
	if o.JSON {
		return exit, printJSON(o.Out, r.JSON(o.Language))
	}
	return exit, r.WriteText(o.Out, o.Language)
}
