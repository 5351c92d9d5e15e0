package rabbitmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/testkit"
)

// discovered is what the monitor's credential sees, by name.
func discovered(t *testing.T, v *testkit.Vhost, limit int) (map[string]QueueFacts, Discovery) {
	t.Helper()
	d, err := open(t, v, nil).Discover(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]QueueFacts{}
	for _, q := range d.Queues {
		byName[q.Name] = q
	}
	return byName, d
}

func TestQueuesAreDiscoveredWithWhereTheirDeadLettersGo(t *testing.T) {
	v := testkit.RabbitMQ(t)
	ch := channel(t, v.AMQP)
	if err := ch.ExchangeDeclare("dlx", "direct", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	declare(t, ch, "pay", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "pay.retry"})
	declare(t, ch, "pay.retry", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "pay", "x-message-ttl": int64(5000)})
	declare(t, ch, "stock", amqp.Table{"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "stock.dead", "x-queue-type": "quorum"})
	declare(t, ch, "by policy", nil)
	declare(t, ch, "grave", nil)
	declare(t, ch, "other grave", nil)
	declare(t, ch, "lost", amqp.Table{"x-dead-letter-exchange": "no such exchange"})
	declare(t, ch, "audit", amqp.Table{"x-queue-type": "stream"})
	odd := "odd \"name\" \x00 /../%2F?#订单"
	declare(t, ch, odd, nil)
	for key, queue := range map[string]string{"stock.dead": "grave", "by policy": "other grave"} {
		if err := ch.QueueBind(queue, key, "dlx", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ch.QueueDeclare("passing", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	administer(t, v, http.MethodPut, map[string]any{"pattern": "^by policy$", "apply-to": "queues", "definition": map[string]any{"dead-letter-exchange": "dlx"}}, "policies", v.Name, "dead")
	before := definitions(t, v)
	var found map[string]QueueFacts
	var d Discovery
	testkit.Eventually(t, counted, func() bool {
		found, d = discovered(t, v, 100)
		return found["by policy"].DeadLetters
	}, "the policy does not show")
	if !d.Complete || len(found) != 10 {
		t.Fatalf("complete %v, %d queues", d.Complete, len(found))
	}
	for name, want := range map[string]QueueFacts{
		"pay":       {Kind: "classic", DeadLetters: true, Targets: []string{"pay.retry"}},
		"pay.retry": {Kind: "classic", DeadLetters: true, Delays: true, Targets: []string{"pay"}},
		"stock":     {Kind: "quorum", DeadLetters: true, Targets: []string{"grave"}},
		"by policy": {Kind: "classic", DeadLetters: true, Targets: []string{"other grave"}},
		"grave":     {Kind: "classic"},
		"lost":      {Kind: "classic", DeadLetters: true},
		"audit":     {Kind: "stream"},
		"passing":   {Kind: "classic", Passing: true},
		odd:         {Kind: "classic"},
	} {
		want.Name = name
		if got := found[name]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if after := definitions(t, v); after != before {
		t.Error("the definitions changed")
	}
}

// definitions are all that is declared in the vhost.
func definitions(t *testing.T, v *testkit.Vhost) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.Management+"/api/definitions/"+url.PathEscape(v.Name), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(v.Admin, v.AdminPassword)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all map[string]any
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, &all) != nil {
		t.Fatalf("definitions: %s %v", resp.Status, err)
	}
	var lines []string
	for kind, list := range all {
		for _, one := range asList(list) {
			line, _ := json.Marshal(one)
			lines = append(lines, kind+" "+string(line))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func TestManyQueuesAreListedAPageAtATimeAndUpToTheLimit(t *testing.T) {
	v := testkit.RabbitMQ(t)
	ch := channel(t, v.AMQP)
	const queues = listPage + 20
	for n := range queues {
		declare(t, ch, fmt.Sprintf("q%03d", n), nil)
	}
	if found, d := discovered(t, v, 1000); len(found) != queues || !d.Complete {
		t.Errorf("%d queues, complete %v", len(found), d.Complete)
	}
	if found, d := discovered(t, v, 50); len(found) != 50 || d.Complete {
		t.Errorf("with a limit: %d queues, complete %v", len(found), d.Complete)
	}
}

func TestABrokerThatCannotBeAskedSaysWhy(t *testing.T) {
	v := testkit.RabbitMQ(t)
	for words, change := range map[string]func(*Options){
		"wrong RabbitMQ user or password": func(o *Options) { o.Password = "wrong-secret" },
		"vhost":                           func(o *Options) { o.Vhost = "no such vhost" },
		"connection refused":              func(o *Options) { o.Management = "http://127.0.0.1:1" },
	} {
		_, err := open(t, v, change).Discover(t.Context(), 10)
		var failure *Error
		if !errors.As(err, &failure) || !strings.Contains(failure.Text.EN, words) || failure.Text.ZH == "" || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("want %q, got %v", words, err)
		}
	}
}
