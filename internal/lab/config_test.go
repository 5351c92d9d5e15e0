package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func testConfig(t *testing.T, l *Lab) {
	var c struct {
		Listen  string
		Mysql   map[string]struct{ Address, Database, User string }
		Redis   map[string]struct{ Addresses []string }
		Brokers map[string]struct{ Type, Management, User, Password string }
		Ledgers map[string]struct{ Mysql, Table, Preset string }
		Flows   map[string]struct {
			BizTypes []string `yaml:"biz_types"`
			Ledger   string
			Lock     struct {
				Key     string
				TTL     time.Duration
				Renewed bool
			}
			Queue struct {
				Name       string
				DeadLetter string `yaml:"dead_letter"`
				ID         struct{ JSON string }
			}
		}
	}
	if err := yaml.Unmarshal(l.Config(), &c); err != nil {
		t.Fatalf("%v\n%s", err, l.Config())
	}
	if c.Listen != "127.0.0.1:9877" || c.Mysql["main"].Address != l.mariadb.Addr || c.Redis["main"].Addresses[0] != l.redisServer.Addr ||
		c.Brokers["rabbit"].Management != l.rabbitmq.Management || c.Brokers["rabbit"].User == l.rabbitmq.Admin {
		t.Errorf("servers: %+v", c)
	}
	for _, r := range l.routes {
		f := c.Flows[r.Name]
		if f.Lock.Key != r.Lock.Template.String() || f.Lock.TTL != r.Lock.TTL || f.Lock.Renewed != r.Lock.Renewed {
			t.Errorf("lock of %s: %+v", r.Name, f.Lock)
		}
		if c.Ledgers[f.Ledger].Table == "" || len(f.BizTypes) == 0 {
			t.Errorf("flow %s: %+v", r.Name, f)
		}
		if r.Queue != nil && (f.Queue.Name != r.Queue.Name || f.Queue.DeadLetter != r.Queue.DeadLetter || f.Queue.ID.JSON != "biz_id") {
			t.Errorf("queue of %s: %+v", r.Name, f.Queue)
		}
	}
}

// testReplayer: the credential of replays takes dead letters, and nothing from a work queue.
func testReplayer(t *testing.T, l *Lab) {
	conn, err := dialRabbit(fmt.Sprintf("amqp://%s:%s@%s/", replayUser, l.replayPassword, l.rabbitmq.AMQP), "replayer")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q := routeOf(l.routes, "imports").Queue
	for name, may := range map[string]bool{q.Name: false, q.Retry[0]: false, q.DeadLetter: true} {
		channel, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := channel.Get(name, false); (err == nil) != may || err != nil && !strings.Contains(err.Error(), "ACCESS_REFUSED") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testMonitor: the credential in the configuration sees totals and cannot take a message.
func testMonitor(t *testing.T, l *Lab) {
	q := routeOf(l.routes, "imports").Queue.Name
	if n, known, err := l.monitor.total(t.Context(), plainClient(), q); err != nil || !known || n != waitingImports {
		t.Fatalf("%d messages, known %v, %v", n, known, err)
	}
	conn, err := dialRabbit(fmt.Sprintf("amqp://%s:%s@%s/", l.monitor.user, l.monitor.password, l.rabbitmq.AMQP), "intruder")
	if err != nil {
		return // refused at the door
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := channel.Get(q, false); err == nil || !strings.Contains(err.Error(), "ACCESS_REFUSED") {
		t.Fatalf("the monitor took a message: %v", err)
	}
}
