package lockstore

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// startCluster makes a cluster of three nodes on loopback.
func startCluster(t *testing.T) []string {
	t.Helper()
	var addresses []string
	var nodes []*redis.Client
	for i := range 3 {
		server := testkit.StartRedis(t, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "yes", "--cluster-node-timeout", "2000")
		node := admin(t, server.Addr)
		do(t, node, "CLUSTER", "ADDSLOTSRANGE", i*5461, min((i+1)*5461, 16384)-1+i/2)
		addresses, nodes = append(addresses, server.Addr), append(nodes, node)
	}
	for i, node := range nodes {
		do(t, node, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		host, port, err := net.SplitHostPort(addresses[(i+1)%3])
		if err != nil {
			t.Fatal(err)
		}
		do(t, node, "CLUSTER", "MEET", host, port)
	}
	for _, node := range nodes {
		testkit.Eventually(t, 30*time.Second, func() bool {
			info, err := node.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}, "the cluster does not form")
	}
	return addresses
}

func TestCluster(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t)
	all := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, DisableIdentity: true})
	defer all.Close()
	// The one address of a configuration endpoint is enough.
	s := open(t, Options{Addresses: addresses[:1], Mode: ModeCluster})

	for i := range 50 {
		bizType := fmt.Sprintf("type%d", i)
		do(t, all, "SET", "idem_lock:"+bizType+":1", "token", "EX", "1000")
		do(t, all, "HSET", "idem_stat:{"+bizType+"}", "attempt", i)
		do(t, all, "SADD", "idem_stat:types", bizType)
		if got := s.Look(t.Context(), "idem_lock:"+bizType+":1"); got.State != flow.Found || got.Value != "token" {
			t.Errorf("key %d: %s %v", i, got.State, got.Reason)
		}
		if got := s.Look(t.Context(), "idem_lock:"+bizType+":2"); got.State != flow.Absent {
			t.Errorf("absent key %d: %s %v", i, got.State, got.Reason)
		}
	}
	counters, err := s.Counters(t.Context(), "")
	if err != nil || len(counters.Types) != 50 {
		t.Errorf("%d types, %v", len(counters.Types), err)
	}
	for _, c := range counters.Types {
		if fmt.Sprint("type", c.Attempt) != c.BizType {
			t.Errorf("%s has %d attempts", c.BizType, c.Attempt)
		}
	}

	t.Run("hostile keys", func(t *testing.T) {
		for _, key := range hostileKeys() {
			do(t, all, "SET", key, "v")
			if got := s.Look(t.Context(), key); got.State != flow.Found {
				t.Errorf("%.40q: %s %v", key, got.State, got.Reason)
			}
		}
	})
	t.Run("a node in mode single", func(t *testing.T) {
		single := open(t, Options{Addresses: addresses[:1]})
		var moved int
		for i := range 50 {
			if got := single.Look(t.Context(), fmt.Sprintf("idem_lock:type%d:1", i)); got.State != flow.Found {
				wantError(t, got, "set mode: cluster")
				moved++
			}
		}
		if moved == 0 || moved == 50 {
			t.Errorf("%d of 50 keys are on other nodes", moved)
		}
		wantError(t, open(t, Options{Addresses: addresses[:1], DB: 2}).Look(t.Context(), "k"), "set mode: cluster")
	})
	t.Run("least privilege", func(t *testing.T) {
		for _, address := range addresses {
			grant(t, address, slices.Concat([]string{"allkeys"}, grantsForLook, grantsForCounters, grantsForPing, grantForCluster)...)
		}
		observer := open(t, Options{Addresses: addresses, Mode: ModeCluster, User: "observer", Password: "pass-of-observer"})
		for i := range 10 {
			if got := observer.Look(t.Context(), fmt.Sprintf("idem_lock:type%d:1", i)); got.State != flow.Found {
				t.Errorf("%s %v", got.State, got.Reason)
			}
		}
		if counters, err := observer.Counters(t.Context(), ""); err != nil || len(counters.Types) != 50 {
			t.Errorf("%d types, %v", len(counters.Types), err)
		}
		if err := observer.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		for _, address := range addresses {
			grant(t, address, slices.Concat([]string{"allkeys"}, grantsForLook)...)
		}
		wantError(t, open(t, Options{Addresses: addresses, Mode: ModeCluster, User: "observer", Password: "pass-of-observer"}).Look(t.Context(), "k"),
			"may not run CLUSTER|SLOTS: grant it")
	})
	t.Run("a slot without a node", func(t *testing.T) {
		for _, address := range addresses {
			do(t, admin(t, address), "CLUSTER", "DELSLOTSRANGE", "0", "100")
		}
		testkit.Eventually(t, 20*time.Second, func() bool {
			e := s.Look(t.Context(), "k")
			return e.State == flow.Error && strings.Contains(e.Reason.EN, "cluster is down")
		}, "the cluster answers although it is down")
	})
}

func TestClusterThatIsAbsent(t *testing.T) {
	s := open(t, Options{Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}, Mode: ModeCluster})
	wantError(t, s.Look(t.Context(), "k"), "connection refused")
}

func TestClusterThatHangs(t *testing.T) {
	server := testkit.StartRedis(t, "--cluster-enabled", "yes")
	proxy := testkit.NewProxy(t, server.Addr)
	proxy.Hang(true)
	s := open(t, Options{Addresses: []string{proxy.Addr}, Mode: ModeCluster, Timeout: 200 * time.Millisecond})
	start := time.Now()
	wantError(t, s.Look(t.Context(), "k"), "no answer within")
	if waited := time.Since(start); waited > 2*time.Second {
		t.Errorf("waited %s", waited)
	}
}

// startSentinel makes a sentinel that watches the master at addr under the name shop.
func startSentinel(t *testing.T, master string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf") // the sentinel writes its state there
	if err := os.WriteFile(file, fmt.Appendf(nil, "sentinel monitor shop %s %s 1\n", host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	return testkit.StartRedis(t, file, "--sentinel").Addr
}

func TestSentinel(t *testing.T) {
	db := testkit.Redis(t)
	do(t, db.Client, "SET", "k", "token", "EX", "1000")
	address := startSentinel(t, db.Addr)
	opts := Options{Addresses: []string{address}, Mode: ModeSentinel, MasterName: "shop", DB: db.DB}

	t.Run("found through the sentinel", func(t *testing.T) {
		s := open(t, opts)
		if got := s.Look(t.Context(), "k"); got.State != flow.Found || got.Value != "token" {
			t.Errorf("%s %v", got.State, got.Reason)
		}
		runs(t, s.Look(t.Context(), "k").Command, "token")
	})
	t.Run("one sentinel of two is down", func(t *testing.T) {
		opts := opts
		opts.Addresses = []string{"127.0.0.1:1", address}
		if got := open(t, opts).Look(t.Context(), "k"); got.State != flow.Found {
			t.Errorf("%s %v", got.State, got.Reason)
		}
	})
	t.Run("another master name", func(t *testing.T) {
		opts := opts
		opts.MasterName = "warehouse"
		wantError(t, open(t, opts).Look(t.Context(), "k"), "no sentinel watches a master named warehouse")
	})
	t.Run("the address of the master itself", func(t *testing.T) {
		opts := opts
		opts.Addresses = []string{db.Addr}
		wantError(t, open(t, opts).Look(t.Context(), "k"), "not a sentinel")
	})
	t.Run("a sentinel in mode single", func(t *testing.T) {
		wantError(t, open(t, Options{Addresses: []string{address}}).Look(t.Context(), "k"), "if it is a sentinel, set mode: sentinel")
	})
	t.Run("all sentinels are down", func(t *testing.T) {
		opts := opts
		opts.Addresses = []string{"127.0.0.1:1", "127.0.0.1:2"}
		wantError(t, open(t, opts).Look(t.Context(), "k"), "no sentinel answers: connection refused")
	})
	t.Run("the sentinel hangs", func(t *testing.T) {
		proxy := testkit.NewProxy(t, address)
		proxy.Hang(true)
		opts := opts
		opts.Addresses, opts.Timeout = []string{proxy.Addr}, 200*time.Millisecond
		wantError(t, open(t, opts).Look(t.Context(), "k"), "no answer within")
	})
	t.Run("least privilege", func(t *testing.T) {
		grant(t, address, grantForSentinel...)
		opts := opts
		opts.SentinelUser, opts.SentinelPassword = "observer", "pass-of-observer"
		if got := open(t, opts).Look(t.Context(), "k"); got.State != flow.Found {
			t.Errorf("%s %v", got.State, got.Reason)
		}
	})
	t.Run("wrong password of the sentinel", func(t *testing.T) {
		opts := opts
		opts.SentinelUser, opts.SentinelPassword = "observer", "tell-nobody"
		wantError(t, open(t, opts).Look(t.Context(), "k"), "wrong Redis user or password")
	})
}

func TestSentinelFollowsAFailover(t *testing.T) {
	t.Parallel()
	master := testkit.StartRedis(t)
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := testkit.StartRedis(t, "--replicaof", host+" "+port)
	old, next := admin(t, master.Addr), admin(t, replica.Addr)
	do(t, old, "SET", "k", "before", "EX", "1000")
	testkit.Eventually(t, 20*time.Second, func() bool { return next.Get(t.Context(), "k").Val() == "before" }, "the replica does not follow")
	address := startSentinel(t, master.Addr)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: address, DisableIdentity: true})
	defer sentinel.Close()
	testkit.Eventually(t, 30*time.Second, func() bool {
		replicas, err := sentinel.Replicas(t.Context(), "shop").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["flags"] == "slave"
	}, "the sentinel does not see the replica")

	s := open(t, Options{Addresses: []string{address}, Mode: ModeSentinel, MasterName: "shop"})
	first := facts(t, s, "k")
	if first.Value != "before" {
		t.Fatalf("%s %v", first.State, first.Reason)
	}
	if err := sentinel.Failover(t.Context(), "shop").Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 60*time.Second, func() bool { return next.Set(t.Context(), "k", "after", time.Hour).Err() == nil }, "no failover")
	testkit.Eventually(t, 60*time.Second, func() bool { return s.Look(t.Context(), "k").Value == "after" }, "the store stays with the old master")
	if now := facts(t, s, "k").Server; now.RunID == first.Server.RunID || now.Role != "master" {
		t.Errorf("after the failover: %+v", now)
	}
}

// runs checks what a command of ours shows.
func runs(t testing.TB, command, want string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\n"+want+"\n") {
		t.Errorf("%s: %q %v", command, out, err)
	}
}
