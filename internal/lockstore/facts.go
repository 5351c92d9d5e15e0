package lockstore

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

const (
	// freshFacts is how old facts about a server may be that are told again.
	freshFacts = 2 * time.Second
	// refusedFacts is for how long a server that refuses to tell is not asked again.
	refusedFacts = 30 * time.Second
	// factsGrace is what a look that has its own answer waits for facts that are on
	// their way, if its deadline leaves that much.
	factsGrace = 200 * time.Millisecond
)

// factSheets are the facts about the servers of a store. They are read beside
// the looks, on a connection and with a deadline of their own: no look fails, and
// none is late by more than factsGrace, because a server does not tell about itself.
type factSheets struct {
	// ctx ends what is being read when the store is closed; reading counts it.
	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.WaitGroup

	mu     sync.Mutex
	closed bool
	byNode map[string]*factSheet
}

// factSheet is what one server has told.
type factSheet struct {
	facts   *ServerFacts // nil: it tells nothing
	silence              // why it tells nothing
	at      time.Time    // when that was known
	until   time.Time    // how long it may be told
	// dials is how many connections the store had made when they were asked for.
	// A connection that is made later may lead to another server.
	dials uint64
	// pending is closed when the facts that are being read have arrived; nil when none are.
	pending chan struct{}
	evictions
}

func newFactSheets() *factSheets {
	f := &factSheets{byNode: map[string]*factSheet{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// close ends what is being read and waits for it.
func (f *factSheets) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.reading.Wait()
}

// askFacts starts to read the facts of the server at, unless they are fresh.
func (s *Store) askFacts(at server) {
	f := s.facts
	f.mu.Lock()
	defer f.mu.Unlock()
	sheet := f.byNode[at.name]
	if sheet == nil {
		sheet = &factSheet{}
		f.byNode[at.name] = sheet
	}
	if f.closed || sheet.pending != nil || sheet.good(s.dials.Load()) {
		return
	}
	sheet.pending = make(chan struct{})
	dials := s.dials.Load()
	f.reading.Go(func() {
		facts, silence := s.readFacts(f.ctx, at.client)
		f.mu.Lock()
		defer f.mu.Unlock()
		sheet.take(facts, silence, dials)
	})
}

// tellFacts puts the facts into the entry when they are there, or arrive soon.
func (s *Store) tellFacts(ctx context.Context, at server, e *Entry) {
	grace := factsGrace
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline)*4/5)
	}
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		s.askFacts(at)
		s.facts.mu.Lock()
		sheet := s.facts.byNode[at.name]
		pending, good := sheet.pending, sheet.good(s.dials.Load())
		if good {
			sheet.tell(e)
		}
		s.facts.mu.Unlock()
		if good || pending == nil {
			return
		}
		select {
		case <-pending:
		case <-patience.Done():
			e.Coverage = append(e.Coverage, flow.T("the server has not told about itself in time: restarts and evictions are not considered",
				"服务器未能及时返回自身信息：未考虑重启和淘汰"))
			return
		}
	}
}

// good reports facts that are fresh and were read over connections that are not
// older than any that a look may have used. A refusal does not depend on that.
func (s *factSheet) good(dials uint64) bool {
	return time.Now().Before(s.until) && (s.refused || s.dials == dials)
}

// take keeps what was read.
func (s *factSheet) take(facts *ServerFacts, silence silence, dials uint64) {
	now := time.Now()
	s.facts, s.silence, s.at, s.dials, s.until = facts, silence, now, dials, now.Add(freshFacts)
	if silence.refused {
		s.until = now.Add(refusedFacts)
	}
	if facts != nil {
		facts.NoneEvictedFor = s.note(*facts, now)
	}
	close(s.pending)
	s.pending = nil
}

// tell copies the facts. The server's clock has gone on since they were read.
func (s *factSheet) tell(e *Entry) {
	if s.facts == nil {
		e.Coverage = append(e.Coverage, s.why)
		return
	}
	facts := *s.facts
	if !facts.Now.IsZero() {
		facts.Now = facts.Now.Add(time.Since(s.at))
	}
	e.Server = &facts
}

// evictions follows one server's count of evicted keys.
type evictions struct {
	run   string
	count uint64
	since time.Time
	// reset: the count went down within one run, so that zero does not mean never.
	reset bool
}

// note takes a new count, and is for how long it has not changed.
func (v *evictions) note(f ServerFacts, now time.Time) time.Duration {
	switch {
	case v.since.IsZero() || v.run != f.RunID:
		*v = evictions{run: f.RunID, count: f.Evicted, since: now}
	case v.count != f.Evicted:
		*v = evictions{run: f.RunID, count: f.Evicted, since: now, reset: v.reset || f.Evicted < v.count}
	}
	if f.Evicted == 0 && !v.reset {
		return f.Uptime
	}
	return min(now.Sub(v.since), f.Uptime)
}

// factSections of INFO are asked for one by one: servers before version 7 take
// one name only.
var factSections = []string{"server", "replication", "persistence", "stats"}

// readFacts asks a server about itself: either it tells all that decides, or
// silence says why it does not.
func (s *Store) readFacts(ctx context.Context, client redis.UniversalClient) (*ServerFacts, silence) {
	sections := make([]*redis.StringCmd, len(factSections))
	var clock *redis.TimeCmd
	var save *redis.MapStringStringCmd
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, name := range factSections {
			sections[i] = pipe.Info(ctx, name)
		}
		clock = pipe.Time(ctx)
		save = pipe.ConfigGet(ctx, "save")
	})
	var info strings.Builder
	for _, section := range sections {
		info.WriteString(section.Val())
	}
	f, ok := factsOf(info.String())
	if !ok {
		return nil, s.silence(cmds, took)
	}
	if clock.Err() == nil {
		f.Now = clock.Val()
	}
	// RDB shows in the configuration only; without leave to read it, AOF alone is known.
	if rules, told := save.Val()["save"]; !f.Persistent && save.Err() == nil && told {
		f.Persistent, f.PersistentKnown = rules != "", true
	}
	return &f, silence{}
}

// factsOf is false when INFO lacks a field without which the rest would mislead,
// as that of some proxies does.
func factsOf(info string) (f ServerFacts, ok bool) {
	seconds, noUptime := strconv.ParseInt(infoField(info, "uptime_in_seconds"), 10, 64)
	evicted, noCount := strconv.ParseUint(infoField(info, "evicted_keys"), 10, 64)
	f = ServerFacts{
		RunID: infoField(info, "run_id"), Role: infoField(info, "role"),
		Uptime: time.Duration(seconds) * time.Second, Evicted: evicted,
	}
	if infoField(info, "aof_enabled") == "1" {
		f.Persistent, f.PersistentKnown = true, true
	}
	return f, f.RunID != "" && noUptime == nil && noCount == nil
}

// silence is why a server does not tell about itself.
type silence struct {
	why flow.Text
	// refused: it will not tell later either, unless somebody grants it.
	refused bool
}

func (s *Store) silence(cmds []redis.Cmder, took time.Duration) silence {
	failure := s.failure(cmds, took)
	switch {
	case failure == nil:
		return silence{refused: true, why: flow.T("the server does not tell about itself: restarts and evictions are not considered", "服务器不提供自身信息：未考虑重启和淘汰")}
	case failure.Refused():
		return silence{refused: true, why: flow.T("the Redis user may not run INFO: restarts and evictions are not considered", "Redis 用户没有执行 INFO 的权限：未考虑重启和淘汰")}
	}
	return silence{why: flow.T("the server has not told about itself (%s): restarts and evictions are not considered", "服务器未返回自身信息（%s）：未考虑重启和淘汰", failure.Text)}
}

// serverOf is the server that holds the key, as far as the client knows without
// asking once more.
func (s *Store) serverOf(ctx context.Context, key string) (at server, known bool) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return server{client: s.client}, true
	}
	client, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return server{}, false
	}
	return server{name: client.Options().Addr, client: client}, true
}
