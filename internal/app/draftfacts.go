package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/draft"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// Bounds of what is looked at.
const (
	maxTables     = 2000
	maxCandidates = 50
	maxListTypes  = 200
	newestRows    = 1000
	// maxSampledShards bounds from how many shards rows are read.
	maxSampledShards = 4
	// zoneRows is how many of the newest rows tell the zone of a column.
	zoneRows      = 20
	sampledKeys   = 20000
	sampleTime    = 2 * time.Second
	probedKeys    = 1000
	listedQueues  = 2000
	storeDeadline = 5 * time.Second
)

// collect asks the stores. A store that does not answer becomes a problem in
// the facts; an error means that a target cannot be used at all.
func collect(ctx context.Context, t targets) (draft.Facts, error) {
	var f draft.Facts
	if t.mysql != nil {
		f.MySQL = &t.mysql.MySQL
		if err := collectMySQL(ctx, t.mysql); err != nil {
			return f, err
		}
	}
	if t.redis != nil {
		f.Redis = &t.redis.Redis
		var ledgers []draft.Sampled
		if f.MySQL != nil {
			ledgers = f.MySQL.Ledgers
		}
		if err := collectRedis(ctx, t.redis, draft.NewReader(ledgers)); err != nil {
			return f, err
		}
	}
	if t.rabbitmq != nil {
		f.Broker = &t.rabbitmq.Broker
		if err := collectRabbitMQ(ctx, t.rabbitmq); err != nil {
			return f, err
		}
	}
	return f, nil
}

func collectMySQL(ctx context.Context, t *mysqlTarget) (err error) {
	server, err := ledger.NewServer(ledger.ServerOptions{
		Name: "main", Address: t.Address, Socket: t.Socket, Database: t.Database, User: t.User, Password: t.password, MaxConns: 2,
		StatementLimit: storeDeadline,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	// What goes wrong from here on is the server's.
	if err := readTables(ctx, server, t); err != nil {
		t.Problem = ledger.Explain(err)
		return nil
	}
	if t.ZoneMinutes, t.ZoneKnown, err = server.ZoneMinutes(ctx); err != nil {
		t.Problem = ledger.Explain(err)
	}
	return nil
}

func readTables(ctx context.Context, server *ledger.Server, t *mysqlTarget) error {
	names, complete, err := server.TableNames(ctx, maxTables)
	if err != nil {
		return err
	}
	t.Tables, t.Cut = len(names), !complete
	var tables []string
	for _, n := range names {
		if n.View {
			t.Ignored = append(t.Ignored, draft.Ignored{Name: n.Name, Reason: flow.T("a view", "是视图")})
		} else {
			tables = append(tables, n.Name)
		}
	}
	for _, g := range draft.Fold(tables) {
		facts, err := server.Facts(ctx, g.Tables[0])
		if err != nil {
			return err
		}
		l, reason := draft.Recognise(g, facts)
		if l != nil && len(t.Ledgers) == maxCandidates {
			l, reason = nil, flow.T("more than %d tables look like ledgers: name this one yourself", "像幂等表的表超过 %d 个：请自行配置该表", maxCandidates)
		}
		if l == nil {
			t.Ignored = append(t.Ignored, draft.Ignored{Name: g.Pattern, Reason: reason})
			continue
		}
		sampled, err := t.sample(ctx, server, l)
		if err != nil {
			return err
		}
		t.Ledgers = append(t.Ledgers, sampled)
	}
	return nil
}

// sample reads the newest rows of a table, and its biz_types.
func (t *mysqlTarget) sample(ctx context.Context, server *ledger.Server, guess *draft.Ledger) (draft.Sampled, error) {
	s := draft.Sampled{Ledger: guess}
	if !guess.Readable() {
		return s, nil
	}
	mapping, err := ledger.NewMapping(guess.Preset, guess.Spec())
	if err != nil {
		return s, fmt.Errorf("table %s: %w", guess.Table, err)
	}
	table, err := ledger.New(ledger.Options{Name: guess.Name, Server: server, Table: guess.Table, Mapping: mapping})
	if err != nil {
		return s, fmt.Errorf("table %s: %w", guess.Table, err)
	}
	statuses := map[string]int{}
	shards := table.Shards()
	shards = shards[:min(len(shards), maxSampledShards)]
	for _, shard := range shards {
		batch, err := shard.Newest(ctx, newestRows/len(shards))
		if err != nil {
			s.Problem = ledger.Explain(err)
			break
		}
		t.note(&s, statuses, batch)
	}
	guess.Learn(statuses)
	s.LearnTypes(table.Types(ctx, maxListTypes))
	return s, nil
}

// note takes over what rows show.
func (t *mysqlTarget) note(s *draft.Sampled, statuses map[string]int, batch ledger.Batch) {
	for n, row := range batch.Rows {
		s.Keys = append(s.Keys, flow.Key{BizType: row.BizType, BizID: row.BizID})
		statuses[row.Status]++
		if n < zoneRows && s.LocalTimes() && row.Created.State == ledger.StampOK {
			t.Ahead = append(t.Ahead, row.Created.Time.Sub(batch.DBNow))
		}
	}
}

func collectRedis(ctx context.Context, t *redisTarget, reader *draft.Reader) error {
	store, err := t.open(lockstore.ModeSingle)
	if err != nil {
		return err
	}
	kind, askErr := store.Kind(ctx)
	if kind == "cluster" {
		t.Cluster, t.DB = true, 0
		if err := store.Close(); err != nil {
			return err
		}
		if store, err = t.open(lockstore.ModeCluster); err != nil {
			return err
		}
	}
	if kind == "sentinel" {
		t.Problem = flow.T("this is a sentinel, which holds no keys: name the Redis that it watches, and set mode: sentinel in the file by hand", "这是哨兵，不保存键：请指定它监视的 Redis，并在文件中手工设置 mode: sentinel")
		return store.Close()
	}
	if askErr == nil {
		askErr = t.look(ctx, store, reader)
	}
	var failure *lockstore.Error
	if errors.As(askErr, &failure) {
		t.Problem, askErr = failure.Text, nil
	}
	return errors.Join(askErr, store.Close())
}

func (t *redisTarget) open(mode string) (*lockstore.Store, error) {
	return lockstore.New(lockstore.Options{
		Name: "main", Addresses: []string{t.Address}, Mode: mode, DB: t.DB, User: t.User, Password: t.password, Timeout: storeDeadline,
	})
}

// look walks a part of the keys, and looks for those that the newest rows would
// have by the default shapes.
func (t *redisTarget) look(ctx context.Context, store *lockstore.Store, reader *draft.Reader) (err error) {
	refused := func(err error) bool {
		var failure *lockstore.Error
		return errors.As(err, &failure) && failure.Refused()
	}
	t.Sample, err = store.Sample(ctx, lockstore.SampleOptions{Keys: sampledKeys, For: sampleTime, Closer: reader.Closer})
	if err != nil {
		return err
	}
	if t.Probed, err = store.Probe(ctx, reader.Candidates(probedKeys)); err != nil && !refused(err) {
		return err
	}
	counters, err := store.Counters(ctx, "")
	if err != nil && !refused(err) {
		return err
	}
	for _, c := range counters.Types {
		t.Counted = append(t.Counted, c.BizType)
	}
	return nil
}

func collectRabbitMQ(ctx context.Context, t *rabbitTarget) (err error) {
	broker, err := rabbitmq.New(rabbitmq.Options{
		Name: "rabbit", Management: t.Management, Vhost: t.Vhost, User: t.User, Password: t.password, Timeout: storeDeadline,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	var failure *rabbitmq.Error
	t.Found, err = broker.Discover(ctx, listedQueues)
	if errors.As(err, &failure) {
		t.Problem, err = failure.Text, nil
	}
	return err
}
