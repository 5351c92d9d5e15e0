package scenarios

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/answer"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
	"idemscope/internal/testkit"
)

// Names of the servers: up answers, down refuses every connection.
const (
	up   = "main"
	down = "down"
)

const (
	lockTTL    = time.Minute
	markerTTL  = 24 * time.Hour
	staleAfter = 5 * time.Minute
	// patience is the deadline of every store: nothing here waits for it, and a busy machine may need it.
	patience = 20 * time.Second
)

// shop is a house with many flows on real servers, and a desk that answers about their keys.
type shop struct {
	desk  *answer.Desk
	db    *testkit.Database
	redis *testkit.RedisDB
	// evicting is the Redis of that name.
	evicting *redis.Client
	moving   movingRedis
	// reported is the time of the last step in the trail; later ones must lie behind it.
	reported time.Time
	flows    map[string]flow.Flow
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{db: testkit.MySQL(t), redis: testkit.Redis(t), evicting: openEvicting(t), moving: openMoving(t), flows: map[string]flow.Flow{}, reported: time.Now().Add(-10 * time.Minute)}
	createTables(t, s.db)
	all := flows()
	for _, f := range all {
		s.flows[f.Name] = f
	}
	refused := testkit.NewProxy(t, s.db.Addr)
	refused.Drop(true)
	books := s.openLedgers(t, refused.Addr)
	main := openRedis(t, up, s.redis.Addr, s.redis.DB)
	keys := map[string]dossier.Keys{
		up:       main,
		evicting: openRedis(t, evicting, s.evicting.Options().Addr, 0),
		moving:   openRedis(t, moving, s.moving.way.Addr, 0),
		down:     openRedis(t, down, refused.Addr, s.redis.DB),
	}
	brokers, taps := openBrokers(t, "http://"+refused.Addr)
	catalog := flow.NewCatalog(all)
	gatherer, err := dossier.NewGatherer(dossier.Options{
		Catalog: catalog, Ledgers: books, Redis: keys, Brokers: brokers, Taps: taps, Trail: main.NewTrailScan(""), Deadline: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.desk = answer.NewDesk(answer.Options{Catalog: catalog, Gatherer: gatherer})
	return s
}

func (s *shop) openLedgers(t *testing.T, refused string) map[string]dossier.Records {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]*ledger.Server{}
	for _, o := range []ledger.ServerOptions{
		{Name: up, Address: s.db.Addr},
		{Name: "replica", Address: s.db.Addr, Replica: true},
		{Name: "berlin", Address: s.db.Addr, Zone: berlin},
		{Name: down, Address: refused},
	} {
		o.Database, o.User, o.Password, o.StatementLimit = s.db.Name, s.db.User, s.db.Password, patience
		server, err := ledger.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, server.Close)
		servers[o.Name] = server
	}
	books := map[string]dossier.Records{}
	for name, shape := range ledgers() {
		mapping, err := ledger.NewMapping(shape.preset, shape.spec)
		if err != nil {
			t.Fatal(name, err)
		}
		through := shape.through
		if through == "" {
			through = up
		}
		opened, err := ledger.New(ledger.Options{Name: name, Server: servers[through], Table: shape.table, Archive: shape.archive, Mapping: mapping})
		if err != nil {
			t.Fatal(name, err)
		}
		books[name] = opened
	}
	return books
}

func openRedis(t *testing.T, name, address string, db int) *lockstore.Store {
	t.Helper()
	store, err := lockstore.New(lockstore.Options{Name: name, Addresses: []string{address}, DB: db, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, store.Close)
	return store
}

func openBrokers(t *testing.T, refused string) (brokers map[string]dossier.Queues, taps map[string]dossier.Teller) {
	t.Helper()
	v := testkit.RabbitMQ(t)
	brokers, taps = map[string]dossier.Queues{}, map[string]dossier.Teller{}
	for name, address := range map[string]string{up: v.Management, tapped: v.Management, down: refused} {
		b, err := rabbitmq.New(rabbitmq.Options{
			Name: name, Management: address, Vhost: v.Name, User: v.Monitor, Password: v.MonitorPassword, Timeout: patience,
		})
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, b.Close)
		brokers[name] = b
		if name == tapped {
			taps[name] = openTap(t, v, b)
		}
	}
	fillQueues(t, v, brokers[up])
	return brokers, taps
}

func closeAtEnd(t *testing.T, end func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
