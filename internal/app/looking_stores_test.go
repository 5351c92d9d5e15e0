package app

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// lookingUser is the user of MySQL that only the product under test has. Its
// server would let it write.
const lookingUser = "looking"

// watchedMySQL is a server that writes down every statement.
type watchedMySQL struct {
	*servers.MariaDB
	db  *sql.DB
	log string
}

func newWatchedMySQL(t *testing.T) *watchedMySQL {
	t.Helper()
	w := &watchedMySQL{MariaDB: testkit.StartMariaDB(t, servers.MariaDBOptions{Args: []string{"--general-log=1", "--log-output=FILE"}})}
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s)/?multiStatements=true", w.Addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.db = db
	var dir string
	if err := db.QueryRow("SELECT @@datadir, @@general_log_file").Scan(&dir, &w.log); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(w.log) {
		w.log = filepath.Join(dir, w.log)
	}
	rows := ""
	for _, kind := range queueKinds {
		rows += fmt.Sprintf(`INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES
			('%[1]s', 'done', 2, UTC_TIMESTAMP() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR), ('%[1]s', 'fresh', 1, UTC_TIMESTAMP(), UTC_TIMESTAMP()),
			('%[1]s', 'stuck', 1, UTC_TIMESTAMP() - INTERVAL 2 HOUR, UTC_TIMESTAMP() - INTERVAL 2 HOUR),
			('%[1]s', 'failed', 3, UTC_TIMESTAMP() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 1 HOUR), ('%[1]s', 'unmapped', 9, UTC_TIMESTAMP(), UTC_TIMESTAMP());`, kind)
	}
	if _, err := db.Exec(`CREATE DATABASE shop; USE shop; CREATE TABLE idempotent_record (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
		biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL, status TINYINT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
		UNIQUE KEY uk_biz (biz_type, biz_id)) COLLATE utf8mb4_general_ci; ` + rows); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watchedMySQL) checksum(t *testing.T) (sum string) {
	t.Helper()
	var table string
	if err := w.db.QueryRow("CHECKSUM TABLE shop.idempotent_record EXTENDED").Scan(&table, &sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// entry is the beginning of one entry of the general log: time, connection, command, text.
var entry = regexp.MustCompile(`^(?:\d{6} [ \d]\d:\d\d:\d\d)?\t+ *(\d+) ([A-Z][A-Za-z ]*)\t(.*)`)

// watch returns a function that lists what the product has sent since.
func (w *watchedMySQL) watch(t *testing.T) func() []string {
	t.Helper()
	return func() []string {
		text, err := os.ReadFile(w.log)
		if err != nil {
			t.Fatal(err)
		}
		ours := map[string]bool{}
		var sent []string
		current := false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			m := entry.FindStringSubmatch(line)
			switch {
			case m == nil && current: // a statement of several lines
				sent[len(sent)-1] += " " + strings.TrimSpace(line)
			case m != nil:
				if m[2] == "Connect" {
					ours[m[1]] = strings.HasPrefix(m[3], lookingUser+"@")
				}
				if current = ours[m[1]]; current {
					sent = append(sent, m[2]+" "+m[3])
				}
			}
		}
		return sent
	}
}

// The only commands that may reach MySQL, and what no SELECT of ours may hold: a
// locking read takes locks that writers wait for.
var (
	readsMySQL = regexp.MustCompile(`(?i)^(Connect .*|Quit ?|Ping ?|Close stmt ?|(Query|Prepare|Execute) (\(?SELECT|SHOW|EXPLAIN)\b.*|` +
		`Query SET (SESSION |NAMES |STATEMENT ).*|Query START TRANSACTION READ ONLY|Query (COMMIT|ROLLBACK))$`)
	writesMySQL = regexp.MustCompile(`(?i)\b(FOR UPDATE|LOCK IN SHARE MODE|FOR SHARE|INTO (OUTFILE|DUMPFILE|@)|GET_LOCK|RELEASE_LOCK|NEXTVAL|SETVAL|SET GLOBAL|SLEEP|BENCHMARK)\b`)
)

func checkStatements(t *testing.T, sent []string) {
	t.Helper()
	selects, guarded := 0, 0
	for _, s := range sent {
		if !readsMySQL.MatchString(s) || writesMySQL.MatchString(s) {
			t.Errorf("MySQL got: %.300s", s)
		}
		switch {
		case strings.HasPrefix(s, "Query SELECT"), strings.HasPrefix(s, "Execute SELECT"), strings.HasPrefix(s, "Execute (SELECT"):
			selects++
		case s == "Query SET SESSION TRANSACTION READ ONLY":
			guarded++
		}
	}
	if selects < lookUps/2 || guarded == 0 {
		t.Errorf("%d SELECT and %d read-only sessions were seen: the log does not show what was done", selects, guarded)
	}
	t.Logf("%d statements, %d of them SELECT, in %d sessions", len(sent), selects, guarded)
}

// watchedRedis is a server whose MONITOR is followed.
type watchedRedis struct {
	*servers.Redis
	client *redis.Client
}

func newWatchedRedis(t *testing.T) *watchedRedis {
	t.Helper()
	w := &watchedRedis{Redis: testkit.StartRedis(t, "--notify-keyspace-events", "Ex")}
	w.client = redis.NewClient(&redis.Options{Addr: w.Addr, DisableIdentity: true})
	t.Cleanup(func() { _ = w.client.Close() })
	ctx := t.Context()
	for _, kind := range queueKinds {
		for _, err := range []error{
			w.client.Set(ctx, "idem_lock:"+kind+":lock-only", "worker-1", 0).Err(),
			w.client.Set(ctx, "idem_lock:"+kind+":fresh", "worker-2", 0).Err(),
			w.client.Set(ctx, "idempotent:"+kind+":marker-only", "1", 0).Err(),
			w.client.Set(ctx, "idempotent:"+kind+":done", "1", time.Hour).Err(),
			w.client.HSet(ctx, "idem_lock:"+kind+":stuck", "field", "1").Err(),
			w.client.SAdd(ctx, "idem_stat:types", kind).Err(),
			w.client.XAdd(ctx, &redis.XAddArgs{Stream: "idem_trail", Values: []string{"biz_type", kind, "biz_id", "done", "step", "received"}}).Err(),
			w.client.HSet(ctx, "idem_stat:{"+kind+"}", "attempt", 3, "completed", 3, "ms_le_5", 3, "ms_sum", 9).Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// content lists every key with its serialized value and whether it expires.
func (w *watchedRedis) content(t *testing.T) []string {
	t.Helper()
	keys, err := w.client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	for i, key := range keys {
		value, err := w.client.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		left, err := w.client.PTTL(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = fmt.Sprintf("%s %q expires %v", key, value, left > 0)
	}
	return keys
}

// watch returns a function that ends the watching and lists the commands since.
func (w *watchedRedis) watch(t *testing.T) func() []string {
	t.Helper()
	conn, err := net.Dial("tcp", w.Addr)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %v %q", err, lines.Text())
	}
	const end = "end of the watching"
	seen := make(chan []string, 1)
	go func() {
		var commands []string
		for lines.Scan() && !strings.Contains(lines.Text(), end) {
			commands = append(commands, lines.Text())
		}
		seen <- commands
	}()
	return func() []string {
		if err := w.client.Echo(context.Background(), end).Err(); err != nil {
			t.Error(err)
		}
		commands := <-seen
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		return commands
	}
}

// readsRedis are the only commands that may reach Redis, with the words after it
// that may follow where a command has several meanings. None of them writes; each costs the
// server a bounded time.
var readsRedis = map[string]string{
	"HELLO": "", "PING": "", "TIME": "", "INFO": "", "CONFIG": "GET", "ACL": "WHOAMI GETUSER",
	"TYPE": "", "PTTL": "", "GETRANGE": "", "STRLEN": "", "SCAN": "",
	"SSCAN": "", "HMGET": "", // counters
	"XREAD": "", "XRANGE": "", "XREVRANGE": "", "XLEN": "", // trail
	"SUBSCRIBE": "", // expirations
}

// monitorLine is one line of MONITOR: time, db and address, command, first argument.
var monitorLine = regexp.MustCompile(`^\+\d+\.\d+ \[\d+ [^\]]*\] "([^"]+)"(?: "([^"]*)")?`)

func checkCommands(t *testing.T, lines []string) {
	t.Helper()
	counts := map[string]int{}
	for _, line := range lines {
		m := monitorLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("a line of MONITOR that is not understood: %q", line)
			continue
		}
		name := strings.ToUpper(m[1])
		counts[name]++
		if word, ok := readsRedis[name]; !ok || word != "" && !slices.Contains(strings.Fields(word), strings.ToUpper(m[2])) {
			t.Errorf("Redis got: %.200s", line)
		}
	}
	if counts["PTTL"] < lookUps/2 || counts["SCAN"] == 0 || counts["HMGET"] == 0 || counts["XREAD"] == 0 {
		t.Errorf("the watching does not show what was done: %v", counts)
	}
	t.Logf("%v", counts)
}

// queueKinds are the queues that are looked at, and the biz_types that go with them.
var queueKinds = []string{"classic", "quorum"}

// watchedQueues are queues in pairs: one that is looked at and one that is not.
type watchedQueues struct {
	vhost *testkit.Vhost
}

const waitingMessages = 12

// watchedExchange feeds the queues.
const watchedExchange = "looked_at"

// newWatchedQueues makes the pairs, empty.
func newWatchedQueues(t *testing.T) *watchedQueues {
	t.Helper()
	w := &watchedQueues{vhost: testkit.RabbitMQ(t)}
	w.channel(t, func(ch *amqp.Channel) {
		if err := ch.ExchangeDeclare(watchedExchange, "direct", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range w.names() {
			kind, _, _ := strings.Cut(name, ".")
			dead := name + ".dead"
			args := amqp.Table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
			if kind == "quorum" {
				args["x-delivery-limit"] = int32(2)
			}
			for queue, args := range map[string]amqp.Table{dead: {"x-queue-type": kind}, name: args} {
				if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
					t.Fatal(err)
				}
			}
			if err := ch.QueueBind(name, name, watchedExchange, false, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	return w
}

// fill puts the same messages into both queues of each pair, of which the first
// ones are given back once: one more attempt and the broker gives them up.
func (w *watchedQueues) fill(t *testing.T) {
	t.Helper()
	w.channel(t, func(ch *amqp.Channel) {
		for _, name := range w.names() {
			for i := range waitingMessages {
				id := fmt.Sprintf("m-%d", i)
				confirmed, err := ch.PublishWithDeferredConfirm(watchedExchange, name, true, false, amqp.Publishing{MessageId: id, Body: []byte(`{"biz_id":"` + id + `"}`), DeliveryMode: amqp.Persistent})
				if err != nil || !confirmed.Wait() {
					t.Fatalf("publish: %v", err)
				}
			}
			giveBack(t, ch, name, 4)
		}
	})
}

func (w *watchedQueues) names() []string {
	var names []string
	for _, kind := range queueKinds {
		names = append(names, kind+".looked_at", kind+".left_alone")
	}
	return names
}

// giveBack takes the first n messages and returns them.
func giveBack(t *testing.T, ch *amqp.Channel, queue string, n int) {
	t.Helper()
	var last uint64
	for range n {
		m, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			t.Fatalf("get from %s: %v %v", queue, ok, err)
		}
		last = m.DeliveryTag
	}
	if err := ch.Nack(last, true, true); err != nil {
		t.Fatal(err)
	}
}

func (w *watchedQueues) channel(t *testing.T, use func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial(w.vhost.AMQP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	use(ch)
}

// compare takes every message out of both queues of each pair.
func (w *watchedQueues) compare(t *testing.T) {
	w.channel(t, func(ch *amqp.Channel) {
		for _, kind := range queueKinds {
			looked, alone := drain(t, ch, kind+".looked_at"), drain(t, ch, kind+".left_alone")
			if !slices.Equal(looked, alone) {
				t.Errorf("%s: the queue that was looked at gave\n%q\nthe other\n%q", kind, looked, alone)
			}
			if len(alone) != waitingMessages || !slices.ContainsFunc(alone, func(m string) bool { return strings.Contains(m, "redelivered true") }) {
				t.Errorf("%s: the messages are not as they were prepared: %q", kind, alone)
			}
			if dead := drain(t, ch, kind+".looked_at.dead"); len(dead) > 0 {
				t.Errorf("%s: given up: %q", kind, dead)
			}
		}
	})
}

// drain takes every message and words what its next consumer would see.
func drain(t *testing.T, ch *amqp.Channel, queue string) []string {
	t.Helper()
	var all []string
	for {
		m, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, fmt.Sprintf("%s redelivered %v deliveries %v deaths %v", m.MessageId, m.Redelivered, m.Headers["x-delivery-count"], m.Headers["x-death"]))
	}
}
