package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"idemscope/internal/broker"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// maxTypes bounds how many biz_types of a ledger are listed.
const maxTypes = 500

// gather asks all stores at once. What does not answer before ctx ends is not known.
func (d *Doctor) gather(ctx context.Context) facts {
	var f facts
	var all sync.WaitGroup
	all.Go(func() { f.mysql, f.ledgers = d.askMySQL(ctx) })
	all.Go(func() { f.redis = d.askRedis(ctx) })
	all.Go(func() { f.brokers = d.askBrokers(ctx) })
	all.Go(func() { f.counters = d.askCounters(ctx) })
	all.Wait()
	f.flows = d.joinFlows(f)
	return f
}

// each calls ask for every name at once, in a fixed order of results.
func each[Store, Result any](stores map[string]Store, ask func(string, Store) Result) []Result {
	names := slices.Sorted(maps.Keys(stores))
	results := make([]Result, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { results[i] = ask(name, stores[name]) })
	}
	all.Wait()
	return results
}

func (d *Doctor) askMySQL(ctx context.Context) ([]mysqlFacts, []ledgerFacts) {
	servers := map[string]*ledger.Server{}
	for _, l := range d.opts.Ledgers {
		servers[l.Server().Name()] = l.Server()
	}
	var mysql []mysqlFacts
	var ledgers []ledgerFacts
	var all sync.WaitGroup
	all.Go(func() {
		mysql = each(servers, func(_ string, s *ledger.Server) mysqlFacts { return d.askServer(ctx, s) })
	})
	all.Go(func() {
		ledgers = each(d.opts.Ledgers, func(name string, l *ledger.Ledger) ledgerFacts { return d.askLedger(ctx, name, l) })
	})
	all.Wait()
	for i, l := range ledgers {
		j := slices.IndexFunc(mysql, func(m mysqlFacts) bool { return m.name == d.opts.Ledgers[l.name].Server().Name() })
		ledgers[i].server = mysql[j]
	}
	return mysql, ledgers
}

func (d *Doctor) askServer(ctx context.Context, s *ledger.Server) mysqlFacts {
	m := mysqlFacts{name: s.Name(), database: s.Database(), declaredReplica: s.DeclaredReplica()}
	var err error
	m.settings.is, err = s.Settings(ctx)
	m.settings.why = ledger.Explain(err)
	m.grants.is, err = s.Grants(ctx)
	m.grants.why = ledger.Explain(err)
	if act := d.opts.ActMySQL[m.name]; act != nil {
		grants, err := act.Grants(ctx)
		m.act = &told[ledger.Grants]{is: grants, why: ledger.Explain(err)}
	}
	m.replication.why = m.settings.why
	if m.settings.why.Empty() {
		m.replication.is, err = s.Replication(ctx, m.settings.is.Dialect)
		m.replication.why = ledger.Explain(err)
	}
	return m
}

func (d *Doctor) askLedger(ctx context.Context, name string, l *ledger.Ledger) ledgerFacts {
	f := ledgerFacts{name: name, zone: l.Server().Zone(), survey: l.Survey(ctx), resettable: l.Resettable()}
	for _, one := range d.opts.Flows {
		if one.Ledger == name {
			f.flows = append(f.flows, one)
		}
	}
	list, complete, err := l.Types(ctx, maxTypes)
	if errors.Is(err, ledger.ErrNoIndex) || f.hidden() {
		// The newest rows name some, at least. That a table is not there is a
		// problem of its own.
		list, err = f.recentTypes(), nil
	}
	f.types = told[typeList]{is: typeList{list, complete}, why: ledger.Explain(err)}
	return f
}

// hidden reports whether a table of the ledger is not there, or may not be seen.
func (f ledgerFacts) hidden() bool {
	return slices.ContainsFunc(f.survey.Tables, func(t ledger.TableSurvey) bool { return t.Hidden })
}

func (f ledgerFacts) recentTypes() (types []string) {
	for _, t := range f.survey.Tables {
		if t.Recent != nil {
			types = append(types, t.Recent.Types...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func (d *Doctor) askRedis(ctx context.Context) (all []redisFacts) {
	lasting := map[string]bool{d.opts.CountersSource: d.opts.Counters != nil}
	for _, f := range d.opts.Flows {
		if f.Marker != nil {
			lasting[f.Marker.Redis] = true
		}
	}
	found := each(d.opts.Redis, func(name string, s *lockstore.Store) []redisFacts {
		base := redisFacts{name: name, db: s.DB(), remote: s.Remote(), password: s.HasPassword(), lasting: lasting[name]}
		base.act = askActRights(ctx, d.opts.ActRedis[name])
		surveys, err := s.Survey(ctx)
		if err != nil {
			base.survey.why = textOf(err)
			return []redisFacts{base}
		}
		var servers []redisFacts
		for _, one := range surveys {
			at := base
			if at.survey.is = one; one.Name != "" {
				at.name += " " + one.Name
			}
			servers = append(servers, at)
		}
		return servers
	})
	return slices.Concat(found...)
}

// askActRights asks the second user what it may do; nil without one. In a cluster
// the first server answers: users are the same on all.
func askActRights(ctx context.Context, s *lockstore.Store) *told[lockstore.Rights] {
	if s == nil {
		return nil
	}
	surveys, err := s.Survey(ctx)
	if err != nil || len(surveys) == 0 {
		return &told[lockstore.Rights]{why: textOf(err)}
	}
	if !surveys[0].RightsWhy.Empty() {
		// Who may not even ask for his rights is limited.
		return &told[lockstore.Rights]{is: lockstore.Rights{Commands: "?"}}
	}
	return &told[lockstore.Rights]{is: surveys[0].Rights}
}

// textOf words an error of a store; both kinds of stores word their own.
func textOf(err error) flow.Text {
	var redis *lockstore.Error
	var worded interface{ Worded() flow.Text }
	switch {
	case err == nil:
		return flow.Text{}
	case errors.As(err, &redis):
		return redis.Text
	case errors.As(err, &worded):
		return worded.Worded()
	}
	return flow.T("it could not be read: %v", "无法读取：%v", flow.Visible(err.Error()))
}

func (d *Doctor) askBrokers(ctx context.Context) []brokerFacts {
	return each(d.opts.Brokers, func(name string, b Broker) brokerFacts {
		named := namedQueues(name, d.opts.Flows)
		f := brokerFacts{name: name}
		asked := time.Now()
		setUp, err := b.SetUp(ctx, named)
		f.setUp = told[broker.SetUp]{is: setUp, why: textOf(err)}
		for i, q := range named {
			one := queueFacts{NamedQueue: q, version: setUp.Version, asked: asked, unnamed: d.unnamed(name, q)}
			if one.is.why = f.setUp.why; one.is.why.Empty() {
				one.is.is = setUp.Queues[i]
			}
			f.queues = append(f.queues, one)
		}
		return f
	})
}

// unnamed reports whether no flow that reads the work queue names one for retries or dead letters.
func (d *Doctor) unnamed(broker string, q broker.NamedQueue) bool {
	for _, f := range d.opts.Flows {
		if f.Queue != nil && f.Queue.Broker == broker && f.Queue.Name == q.Name && (f.Queue.DeadLetter != "" || len(f.Queue.Retry) > 0) {
			return false
		}
	}
	return true
}

func (d *Doctor) askCounters(ctx context.Context) counterFacts {
	f := counterFacts{named: flow.NewCatalog(d.opts.Flows).Types(), rest: slices.ContainsFunc(d.opts.Flows, func(f flow.Flow) bool { return f.Rest })}
	if d.opts.Counters == nil {
		return f
	}
	f.source = d.opts.CountersSource
	read, err := d.opts.Counters(ctx)
	f.read = told[lockstore.Counters]{is: read, why: textOf(err)}
	return f
}

// joinFlows gives each flow what its stores said.
func (d *Doctor) joinFlows(f facts) (flows []flowFacts) {
	catalog := flow.NewCatalog(d.opts.Flows)
	for _, one := range d.opts.Flows {
		joined := flowFacts{Flow: one, catalog: catalog, counted: f.counters.source != ""}
		joined.runs.why = f.counters.read.why
		for _, c := range f.counters.read.is.Types {
			carries := slices.ContainsFunc(catalog.For(c.BizType), func(has flow.Flow) bool { return has.Name == one.Name })
			if r, ran := runsOf(c); ran && carries {
				joined.runs.is = append(joined.runs.is, r)
			}
		}
		for _, l := range f.ledgers {
			if l.name == one.Ledger {
				joined.types = l.types
			}
		}
		f.joinQueues(&joined)
		if d.opts.Retention != nil {
			joined.keeps, _ = d.opts.Retention(one.Ledger)
		}
		flows = append(flows, joined)
	}
	return flows
}

// joinQueues gives a flow what its broker said of its queues.
func (f facts) joinQueues(to *flowFacts) {
	if to.Queue == nil {
		return
	}
	for _, b := range f.brokers {
		if b.name != to.Queue.Broker {
			continue
		}
		for i, q := range b.queues {
			if q.Name == to.Queue.Name {
				to.queue = &b.queues[i]
			}
			if q.Name == to.Queue.DeadLetter {
				to.deadLetter = &b.queues[i]
			}
			if slices.Contains(to.Queue.Retry, q.Name) {
				to.retry = append(to.retry, q)
			}
		}
	}
}
