package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"

	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

const recordTable = `(id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_id VARCHAR(128) NOT NULL, biz_type VARCHAR(64) NOT NULL,
	status TINYINT NOT NULL COMMENT '1:处理中 2:已完成 3:失败', create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, UNIQUE KEY uk_biz (biz_type, biz_id))`

// drafting is one run of init on stores of a test.
type drafting struct {
	InitOptions
	out bytes.Buffer
}

func newDrafting(t *testing.T) *drafting {
	t.Helper()
	d := &drafting{}
	d.InitOptions = InitOptions{Output: filepath.Join(t.TempDir(), "idemscope.yaml"), Yes: true, Language: flow.English, Out: &d.out}
	return d
}

func (d *drafting) mysql(db *testkit.Database) {
	d.MySQL = fmt.Sprintf("%s@%s/%s", db.User, db.Addr, db.Name)
}

func (d *drafting) redis(r *testkit.RedisDB) { d.Redis = fmt.Sprintf("%s/%d", r.Addr, r.DB) }

func (d *drafting) rabbitmq(v *testkit.Vhost) {
	d.RabbitMQ, d.Vhost = strings.Replace(v.Management, "://", "://"+v.Monitor+"@", 1), v.Name
	d.RabbitMQPassword = NewCredential("RABBIT_PASSWORD", v.MonitorPassword, "")
}

// run returns the exit code and the text of the file.
func (d *drafting) run(t *testing.T) (exit int, text string) {
	t.Helper()
	exit, err := Init(t.Context(), d.InitOptions)
	if err != nil {
		t.Fatalf("%v\n%s", err, &d.out)
	}
	file, err := os.ReadFile(d.Output)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return exit, string(file)
}

// loaded reads the draft as serve would.
func (d *drafting) loaded(t *testing.T) *config.Config {
	t.Helper()
	t.Setenv("RABBIT_PASSWORD", "x")
	if err := CheckConfig(d.Output, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(d.Output)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnEmptyDatabaseGivesADraftThatSaysWhatIsMissing(t *testing.T) {
	d := newDrafting(t)
	d.mysql(testkit.MySQL(t))
	d.redis(testkit.Redis(t))
	exit, text := d.run(t)
	if exit != 1 || !strings.Contains(text, "Not complete") || !strings.Contains(d.out.String(), "No ledger was found") {
		t.Errorf("exit code %d\n%s\n%s", exit, &d.out, text)
	}
	if err := CheckConfig(d.Output, false, io.Discard); err == nil || !strings.Contains(err.Error(), "at least one flow") {
		t.Errorf("config check says %v", err)
	}
}

func TestThreeLedgersAreFoundAmongFiveHundredTables(t *testing.T) {
	db := testkit.MySQL(t)
	for n := range 497 {
		db.Exec(t, fmt.Sprintf("CREATE TABLE business_%c%c (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(32) NOT NULL, status TINYINT NOT NULL, created_at DATETIME NOT NULL, UNIQUE KEY (name)) ENGINE=MyISAM", 'a'+n/26, 'a'+n%26))
	}
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	db.Exec(t, "CREATE TABLE t_mq_dedup (message_id VARCHAR(64) NOT NULL, message_type VARCHAR(64) NOT NULL, status ENUM('processing','completed','failed') NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, UNIQUE KEY (message_id, message_type))")
	db.Exec(t, "CREATE TABLE consume_log (biz_id VARCHAR(64) NOT NULL PRIMARY KEY, handle_time DATETIME NOT NULL)")
	d := newDrafting(t)
	d.mysql(db)
	d.run(t)
	c := d.loaded(t)
	var tables []string
	for _, l := range c.Ledgers {
		tables = append(tables, l.Table)
	}
	if got := strings.Join(tables, " "); got != "consume_log idempotent_record t_mq_dedup" {
		t.Errorf("ledgers %s", got)
	}
	if !strings.Contains(d.out.String(), "500 tables looked at") || !strings.Contains(d.out.String(), "and 485 more: ") {
		t.Errorf("the others are not accounted for:\n%s", &d.out)
	}
}

func TestHostileNamesOnRealServersNeverBreakTheDraft(t *testing.T) {
	db, r, v := testkit.MySQL(t), testkit.Redis(t), testkit.RabbitMQ(t)
	types := []string{"a: b", "# c", `"q"`, "`tick`", "'", "nl\nnl", "${HOME}", "*", "[x", "订单", "null", " lead", "\u202ertl"}
	for _, name := range []string{"odd `name`", `say "hi": # no`, "'quote'", "- {x}", "订单 表", "null"} {
		quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		db.Exec(t, "CREATE TABLE "+quoted+" "+recordTable)
		for n, bizType := range types {
			db.Exec(t, "INSERT INTO "+quoted+" (biz_type, biz_id, status, create_time, update_time) VALUES (?, ?, 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())", bizType, fmt.Sprintf("ID{%d}\n\"%s", n, bizType))
			key := fmt.Sprintf("lock:%s:ID{%d}\n\"%s", bizType, n, bizType)
			if err := r.Client.Set(t.Context(), key, "token\x00", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Client.Set(t.Context(), "lock:\xff\xfe: # {", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	declareQueues(t, v, `a: b`, `# c "x"`, "'`[", "订单.dlq", "订单", "${HOME}")
	d := newDrafting(t)
	d.mysql(db)
	d.redis(r)
	d.rabbitmq(v)
	_, text := d.run(t)
	c := d.loaded(t)
	if len(c.Ledgers) != 5 {
		t.Errorf("%d ledgers; one table name has braces\n%s", len(c.Ledgers), &d.out)
	}
	listed := map[string]bool{}
	for _, f := range c.Flows {
		for _, bizType := range f.BizTypes {
			listed[bizType] = true
		}
		if f.Lock == nil || f.Lock.Template.String() != "lock:{biz_type}:{biz_id}" {
			t.Errorf("flow %s has the lock %v", f.Name, f.Lock)
		}
	}
	for _, bizType := range types {
		if bizType != "*" && !listed[bizType] {
			t.Errorf("biz_type %q is not listed", bizType)
		}
	}
	if strings.ContainsAny(d.out.String()+text, "\x00\u202e\r") {
		t.Error("an invisible byte is shown as it is")
	}
}

func TestTheLeastRightsSuffice(t *testing.T) {
	db := testkit.MySQLFull(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	db.Exec(t, "CREATE TABLE secret_record "+recordTable)
	db.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', 'SO-2025-1', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())")
	db.Exec(t, fmt.Sprintf("CREATE USER reader_%s IDENTIFIED BY 'pass of reader'", db.Name))
	db.Exec(t, fmt.Sprintf("GRANT SELECT ON %[1]s.idempotent_record TO reader_%[1]s", db.Name))
	t.Cleanup(func() { db.Exec(t, "DROP USER reader_"+db.Name) })
	server := testkit.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DisableIdentity: true})
	defer client.Close()
	for _, command := range [][]any{
		{"SET", "idem_lock:pay:SO-2025-1", "token", "EX", 60}, {"SET", "lock:foreign", "token"},
		{"ACL", "SETUSER", "observer", "reset", "on", ">pass of observer", "%R~idem_lock:*", "+scan", "+type", "+pttl", "+getrange", "+ping"},
	} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	d := newDrafting(t)
	d.MySQL = fmt.Sprintf("reader_%s@%s/%s", db.Name, db.Addr, db.Name)
	d.MySQLPassword = NewCredential("MYSQL_PASSWORD", "pass of reader", "")
	d.Redis = "observer@" + server.Addr
	file := filepath.Join(t.TempDir(), "redis password")
	writeFile(t, file, "pass of observer\n")
	d.RedisPassword = NewCredential("REDIS_PASSWORD", "", file)
	_, text := d.run(t)
	for _, secret := range []string{"pass of reader", "pass of observer"} {
		if strings.Contains(d.out.String()+text, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	t.Setenv("MYSQL_PASSWORD", "pass of reader")
	c := d.loaded(t)
	if len(c.Ledgers) != 1 || c.Flows[0].Lock == nil || c.Redis[0].Password.Reveal() != "pass of observer" || c.MySQL[0].Password.Reveal() != "pass of reader" {
		t.Errorf("%d ledgers, flow %+v\n%s", len(c.Ledgers), c.Flows[0], &d.out)
	}
	if !strings.Contains(d.out.String(), "MYSQL_PASSWORD") || strings.Contains(d.out.String(), "REDIS_PASSWORD") {
		t.Errorf("the variables to set are not the right ones:\n%s", &d.out)
	}
}

func TestStoresThatAreDownAreSaidAndTheRestIsWritten(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	down := fmt.Sprintf("127.0.0.1:%d", port)
	d := newDrafting(t)
	d.mysql(db)
	d.Redis, d.RabbitMQ = down, "http://monitor@"+down
	exit, text := d.run(t)
	if exit != 1 || strings.Count(d.out.String(), "could not be read: connection refused") != 2 || strings.Count(text, "could not be read when this was drafted") != 2 {
		t.Errorf("exit code %d\n%s\n%s", exit, &d.out, text)
	}
	if c := d.loaded(t); len(c.Flows) != 1 || c.Redis[0].Addresses[0] != down {
		t.Errorf("%+v", c.Flows)
	}

	d = newDrafting(t)
	d.MySQL, d.Language = "idemscope@"+down+"/shop", flow.Chinese
	exit, text = d.run(t)
	if exit != 1 || !strings.Contains(d.out.String(), "连接被拒绝") || !strings.Contains(text, "尚不完整") {
		t.Errorf("exit code %d\n%s\n%s", exit, &d.out, text)
	}
}

// TestDraftingChangesNothing records every statement and every command.
func TestDraftingChangesNothing(t *testing.T) {
	server := testkit.StartMariaDB(t, servers.MariaDBOptions{Grants: true})
	admin, err := sqlx.Open("mysql", "root@tcp("+server.Addr+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, q := range []string{
		"CREATE DATABASE shop", "CREATE TABLE shop.idempotent_record " + recordTable,
		"INSERT INTO shop.idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', 'SO-2025-1', 2, NOW(), NOW())",
		"SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1",
	} {
		if _, err := admin.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	r := testkit.StartRedis(t)
	client := redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
	defer client.Close()
	if err := client.Set(t.Context(), "idem_lock:pay:SO-2025-1", "token", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	d := newDrafting(t)
	d.MySQL, d.Redis = "root@"+server.Addr+"/shop", r.Addr
	commands := monitored(t, r.Addr, client, func() { d.run(t) })
	var statements []string
	if err := admin.Select(&statements, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute', 'Prepare')"); err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, s := range statements {
		switch upper := strings.ToUpper(s); {
		case strings.Contains(upper, "GENERAL_LOG"):
		case strings.HasPrefix(upper, "SET SESSION"), strings.HasPrefix(upper, "SET NAMES"):
		case strings.HasPrefix(upper, "SELECT") && !strings.Contains(upper, "FOR UPDATE") && !strings.Contains(upper, "LOCK IN"):
			reads++
		default:
			t.Errorf("ran %s", s)
		}
	}
	if reads < 5 || len(commands) < 3 {
		t.Fatalf("%d statements and %d commands were recorded", reads, len(commands))
	}
	for _, line := range commands {
		_, command, _ := strings.Cut(line, `] "`)
		name, _, _ := strings.Cut(command, `"`)
		switch strings.ToLower(name) {
		case "hello", "scan", "type", "pttl", "getrange", "info", "sscan", "hmget", "ping":
		default:
			t.Errorf("ran %s", line)
		}
	}
}

// monitored lists the commands that a Redis runs meanwhile.
func monitored(t *testing.T, addr string, client *redis.Client, during func()) (seen []string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "MONITOR\r\n")
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q %v", lines.Text(), lines.Err())
	}
	during()
	const end = "end of the recording"
	if err := client.Echo(context.Background(), end).Err(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() && !strings.Contains(lines.Text(), end) {
		seen = append(seen, lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return seen
}
