package lockstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one server whose keys a sweep walks.
type node struct {
	server
	cursor uint64
	// begun: its walk has started. done: it has ended.
	begun, done bool
	// doubted: its walk was interrupted, so it may be another server by now.
	doubted bool
	// run is what Redis calls its run_id; empty when that is not known.
	run string
	// usual is the round trip of a page that is usual for it.
	usual time.Duration
}

// server is one server that holds keys of the store.
type server struct {
	// name is host:port in a cluster; elsewhere empty, because the client finds
	// the one server by itself.
	name   string
	client redis.UniversalClient
}

// primaries lists the servers that hold the keys of the store.
func (s *Store) primaries(ctx context.Context) ([]server, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []server{{client: s.client}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var mu sync.Mutex // the library calls for all of them at once
	var servers []server
	start := time.Now()
	err := cluster.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server{name: client.Options().Addr, client: client})
		return nil
	})
	if err != nil {
		return nil, s.broken(err, time.Since(start))
	}
	slices.SortFunc(servers, func(a, b server) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return servers, nil
}

// broken explains an error that no command carries.
func (s *Store) broken(err error, took time.Duration) error {
	cmd := redis.NewStatusCmd(context.Background())
	cmd.SetErr(err)
	return s.failure([]redis.Cmder{cmd}, took)
}

// next is the server to walk; nil when all were walked to the end.
func (w *Sweep) next() *node {
	for _, n := range w.nodes {
		if !n.done {
			return n
		}
	}
	return nil
}

// resume begins or goes on with a pass.
func (w *Sweep) resume(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if !n.doubted {
			continue
		}
		run, err := w.store.runID(ctx, n.client)
		if err != nil {
			return err
		}
		same := run == n.run && (run != "" || w.store.opts.Mode == ModeSingle)
		if !same {
			n.cursor, n.begun, n.done = 0, false, false
		}
		n.doubted = false
	}
	return nil
}

// list brings the servers up to date. One that is no primary any more is
// dropped: what it held is where it moved to.
func (w *Sweep) list(ctx context.Context) error {
	servers, err := w.store.primaries(ctx)
	if err != nil {
		return err
	}
	nodes := make([]*node, 0, len(servers))
	for _, at := range servers {
		n := &node{}
		if i := slices.IndexFunc(w.nodes, func(known *node) bool { return known.name == at.name }); i >= 0 {
			n = w.nodes[i]
		}
		n.server = at
		nodes = append(nodes, n)
	}
	w.nodes = nodes
	return nil
}
