package app

import (
	"errors"
	"fmt"

	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/broker/rabbitmq/tap"
	"idemscope/internal/config"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/janitor"
)

// stores are the configured stores by name. Nothing is connected before the
// first question: a store that is down shows in the answers, not at the start.
type stores struct {
	catalog *flow.Catalog
	ledgers map[string]*ledger.Ledger
	redis   map[string]*lockstore.Store
	brokers map[string]*rabbitmq.Broker
	// taps are those of the brokers that have one.
	taps map[string]*tap.Tap
	// tapped and traced tell the events of the brokers that have a tap or a trace.
	tapped, traced map[string]dossier.Teller
	// trail tells the steps that consumers report; nil when it is not set up.
	trail dossier.Teller
	// audit keeps every attempt to change something; acts tells of them on look-ups,
	// and is nil when nothing can be changed.
	audit *audit.Log
	acts  dossier.Teller
	// tasks are what the janitor may do.
	tasks []janitor.Task
	stops []func() error
}

// openConfigured reads a configuration file and sets up its stores. close must be
// called when it succeeds.
func openConfigured(file string) (*config.Config, *stores, error) {
	c, err := config.Load(file)
	if err != nil {
		return nil, nil, err
	}
	s, err := openStores(c)
	return c, s, err
}

// openStores sets up every store of the configuration. Its errors name the
// place in the file. close must be called when it succeeds.
func openStores(c *config.Config) (*stores, error) {
	s := &stores{
		catalog: flow.NewCatalog(c.Catalog()),
		ledgers: map[string]*ledger.Ledger{},
		redis:   map[string]*lockstore.Store{},
		brokers: map[string]*rabbitmq.Broker{},
		taps:    map[string]*tap.Tap{},
		tapped:  map[string]dossier.Teller{},
		traced:  map[string]dossier.Teller{},
	}
	for _, open := range []func(*config.Config) error{s.openLedgers, s.openRedis, s.openBrokers, s.openTaps, s.openTasks, s.openAudit} {
		if err := open(c); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *stores) openLedgers(c *config.Config) error {
	servers := map[string]*ledger.Server{}
	for _, m := range c.MySQL {
		server, err := ledger.NewServer(ledger.ServerOptions{
			Name: m.Name, Address: m.Address, Socket: m.Socket, Database: m.Database,
			User: m.User, Password: m.Password.Reveal(), TLS: m.TLS.Client(),
			Zone: m.TimeZone, Replica: m.Replica, MaxConns: m.MaxConnections,
			StatementLimit: max(c.Console.LookupTimeout, exporterTimeout) + statementGrace,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("mysql."+m.Name), err)
		}
		s.stops = append(s.stops, server.Close)
		servers[m.Name] = server
	}
	for _, l := range c.Ledgers {
		path := "ledgers." + l.Name
		mapping, err := ledger.NewMapping(l.Preset, ledger.MappingSpec{BizType: l.BizType, BizID: l.BizID, Columns: l.Columns, Status: l.Status})
		if err != nil {
			return fmt.Errorf("%s: %s.%w", c.At(path), path, err)
		}
		opened, err := ledger.New(ledger.Options{Name: l.Name, Server: servers[l.MySQL], Table: l.Table, Mapping: mapping, Archive: l.Archive})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.At(path+".table"), path, err)
		}
		s.ledgers[l.Name] = opened
	}
	return nil
}

func (s *stores) openRedis(c *config.Config) error {
	for _, r := range c.Redis {
		store, err := lockstore.New(redisOptions(c, r))
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("redis."+r.Name), err)
		}
		s.stops = append(s.stops, store.Close)
		s.redis[r.Name] = store
	}
	if c.Counters != nil && c.Counters.Trail {
		s.trail = s.redis[c.Counters.Redis].NewTrailScan(c.Counters.Prefix)
	}
	return nil
}

// redisOptions describe a configured Redis, with the user that reads.
func redisOptions(c *config.Config, r config.Redis) lockstore.Options {
	return lockstore.Options{
		Name: r.Name, Addresses: r.Addresses, Mode: string(r.Mode), MasterName: r.MasterName, DB: r.DB,
		User: r.User, Password: r.Password.Reveal(), SentinelUser: r.SentinelUser, SentinelPassword: r.SentinelPassword.Reveal(),
		TLS: r.TLS.Client(), Timeout: max(c.Console.LookupTimeout, exporterTimeout),
	}
}

func (s *stores) openBrokers(c *config.Config) error {
	for _, b := range c.Brokers {
		opened, err := rabbitmq.New(rabbitmq.Options{
			Name: b.Name, Management: b.Management, Vhost: b.Vhost, User: b.User, Password: b.Password.Reveal(),
			TLS: b.TLS.Client(), Timeout: max(c.Console.LookupTimeout, exporterTimeout),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("brokers."+b.Name), err)
		}
		s.stops = append(s.stops, opened.Close)
		s.brokers[b.Name] = opened
	}
	return nil
}

// close ends all connections, in reverse order.
func (s *stores) close() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	s.stops = nil
	return errors.Join(errs...)
}

// desk sets up look-ups over the stores, with the mask over what they answer.
func (s *stores) desk(c *config.Config) (*answer.Desk, error) {
	masked, err := newMask(c)
	if err != nil {
		return nil, err
	}
	gatherer, err := dossier.NewGatherer(dossier.Options{
		Catalog:  s.catalog,
		Ledgers:  as[dossier.Records](s.ledgers),
		Redis:    as[dossier.Keys](s.redis),
		Brokers:  as[dossier.Queues](s.brokers),
		Taps:     s.tapped,
		Traces:   s.traced,
		Trail:    s.trail,
		Audit:    s.acts,
		Deadline: c.Console.LookupTimeout,
	})
	if err != nil {
		return nil, err
	}
	return answer.NewDesk(answer.Options{Catalog: s.catalog, Gatherer: gatherer, Ledgers: as[answer.Types](s.ledgers), Mask: masked.Text}), nil
}

// as gives every store its role in another package: Go converts elements, not maps.
func as[Role, Store any](stores map[string]Store) map[string]Role {
	roles := make(map[string]Role, len(stores))
	for name, s := range stores {
		roles[name] = any(s).(Role)
	}
	return roles
}
