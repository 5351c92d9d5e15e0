package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"idemscope/internal/flow"
)

// Ledger is one idempotency table, or all the shards of one.
type Ledger struct {
	name    string
	source  string
	server  *Server
	mapping Mapping
	shards  []*Shard
	// archive is nil when the ledger has none.
	archive *Ledger
	// known are the types that neighbours are looked for under.
	known *nearTypes
}

// Options describe a ledger. All fields but Archive are mandatory.
type Options struct {
	// Name is what the configuration calls the ledger.
	Name   string
	Server *Server
	// Table is a name, perhaps with its database ("shop.idempotent_record") and
	// with ranges for shards ("idempotent_record_{00..63}").
	Table   string
	Mapping Mapping
	// Archive is the table to which old rows are moved, written like Table and
	// with the same columns; empty when there is none.
	Archive string
}

// New checks the options. It reads nothing: the schema is read with the first
// look-up, and again when the table changes.
func New(o Options) (*Ledger, error) {
	if o.Name == "" || o.Server == nil {
		return nil, errors.New("a ledger needs a name and a server")
	}
	if o.Mapping.id.IsZero() && o.Mapping.columns[roleBizID] == "" {
		return nil, fmt.Errorf("ledger %s: a mapping is needed", o.Name)
	}
	tables, err := parseTables(o.Table, o.Server.database)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: %w", o.Name, err)
	}
	l := &Ledger{name: o.Name, server: o.Server, mapping: o.Mapping, known: newNearTypes()}
	for _, t := range tables {
		l.shards = append(l.shards, newShard(o.Server, o.Mapping, t))
	}
	l.source = sourceOf(o, tables)
	if o.Archive != "" {
		if l.archive, err = newArchive(o, tables); err != nil {
			return nil, fmt.Errorf("ledger %s: archive: %w", o.Name, err)
		}
	}
	return l, nil
}

func sourceOf(o Options, tables []table) string {
	place := o.Table
	if !strings.Contains(shardRange.ReplaceAllString(place, ""), ".") {
		place = o.Server.database + "." + place
	}
	if len(tables) > 1 {
		place = fmt.Sprintf("%s (%d shards)", place, len(tables))
	}
	return fmt.Sprintf("mysql %s, %s", o.Server.name, place)
}

// Name is what the configuration calls the ledger.
func (l *Ledger) Name() string { return l.name }

// Source names the server and the table, e.g. "mysql main, shop.idempotent_record".
func (l *Ledger) Source() string { return l.source }

// Mapping says what the columns mean.
func (l *Ledger) Mapping() Mapping { return l.mapping }

// Shards lists the tables of the ledger; a ledger that is not sharded has one.
func (l *Ledger) Shards() []*Shard { return l.shards }

// AtOnce is how many statements its server takes from this process at a time.
func (l *Ledger) AtOnce() int { return l.server.conns }

// eachShard calls ask for every shard, as many at once as the server has
// connections for, and waits for all.
func (l *Ledger) eachShard(ask func(i int, s *Shard)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, l.server.conns)
	for i, s := range l.shards {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ask(i, s)
		})
	}
	wg.Wait()
}

// Shard is one table of a ledger. It is safe for concurrent use.
type Shard struct {
	server  *Server
	mapping Mapping
	table   table

	// turn holds the one permit to read or replace what is known of the table.
	// A mutex would make a caller wait beyond its own deadline.
	turn  chan struct{}
	known *knowledge
	clock func() time.Time
}

// knowledge is a schema as it was read at some time.
type knowledge struct {
	layout *layout
	at     time.Time
}

const (
	// freshUsable bounds how long a changed column width or a new index goes unnoticed.
	freshUsable = time.Minute
	// freshBroken bounds how long a repaired table goes unnoticed.
	freshBroken = 10 * time.Second
)

func newShard(s *Server, m Mapping, t table) *Shard {
	return &Shard{server: s, mapping: m, table: t, turn: make(chan struct{}, 1), clock: time.Now}
}

// Name is "database.table".
func (s *Shard) Name() string { return s.table.String() }

// use calls read with the layout of the table. When the server says that the
// table is no longer like that, the schema is read again, once, and read too.
func (s *Shard) use(ctx context.Context, read func(*layout) error) error {
	k, err := s.learn(ctx, nil)
	if err != nil {
		return err
	}
	if err = k.layout.unusable(); err != nil {
		return err
	}
	err = read(k.layout)
	if !isNumber(err, errNoSuchTable, errUnknownColumn, errNoSuchIndex) {
		return err
	}
	if k, err = s.learn(ctx, k); err != nil {
		return err
	}
	if err = k.layout.unusable(); err != nil {
		return err
	}
	return read(k.layout)
}

// learn returns what is known of the table, and reads it when nothing is known,
// when it has become old, or when it is the refuted knowledge.
func (s *Shard) learn(ctx context.Context, refuted *knowledge) (*knowledge, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.known != nil && s.known != refuted && s.clock().Sub(s.known.at) < s.known.lifetime() {
		return s.known, nil
	}
	sch, err := s.server.readSchema(ctx, s.table)
	if err != nil {
		return nil, err
	}
	s.known = &knowledge{layout: resolve(s.mapping, sch, s.server.zone), at: s.clock()}
	return s.known, nil
}

func (k *knowledge) lifetime() time.Duration {
	if k.layout.unusable() != nil || k.layout.lookup == nil {
		return freshBroken
	}
	return freshUsable
}

// explainShard words an error of one of several shards.
func explainShard(s *Shard, err error) flow.Text {
	var own *tableError
	if errors.As(err, &own) {
		return own.Text()
	}
	return flow.T("%s: %s", "%s：%s", s.Name(), Explain(err))
}
