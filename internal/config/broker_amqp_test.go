package config

import (
	"strings"
	"testing"
)

// withBroker is the minimal configuration with more keys in its broker.
func withBroker(keys string) string {
	return strings.Replace(minimal(""), "user: monitor}", "user: monitor, "+keys+"}", 1)
}

func TestTapAndTraceAreRead(t *testing.T) {
	c := mustParse(t, withBroker(`tap: {amqp: "amqp://tap:${P}@h:5672/%2F", stream: idemscope.orders}, trace: {amqp: "amqps://trace:${P}@h", user: admin, password: "${P}"}`), map[string]string{"P": marker})
	b := c.Brokers[0]
	if b.Tap.AMQP.Reveal() != "amqp://tap:"+marker+"@h:5672/%2F" || b.Tap.Stream != "idemscope.orders" || b.Tap.DeadLetters != "" {
		t.Errorf("%+v", b.Tap)
	}
	if b.Trace.AMQP.Reveal() != "amqps://trace:"+marker+"@h" || b.Trace.User != "admin" || b.Trace.Password.Reveal() != marker {
		t.Errorf("%+v", b.Trace)
	}
	redacted, err := c.Redacted()
	if err != nil || strings.Contains(string(redacted), marker) || !strings.Contains(string(redacted), "amqp://tap:%3Csecret%3E@h:5672/") {
		t.Errorf("%v\n%s", err, redacted)
	}
	wantSame(t, c)
	for way, text := range printed(t, c.Brokers) {
		if strings.Contains(text, marker) {
			t.Errorf("through %s: %s", way, text)
		}
	}
	if c := mustParse(t, minimal("console: {actions: true}\n"), nil); c.Brokers[0].Tap != (Tap{}) || c.Brokers[0].Trace != (Trace{}) || !c.Console.Actions {
		t.Errorf("%+v", c)
	}
}

func TestABadAMQPAddressIsRefusedWithoutQuotingIt(t *testing.T) {
	for keys, want := range map[string]string{
		`tap: {}`:                                                                      `brokers.rabbit.tap.amqp: is missing; write "amqp://user:${VARIABLE}@host:5672/%2F"`,
		`tap: {amqp: "h:5672"}`:                                                        "brokers.rabbit.tap.amqp: must be an amqp or amqps URL",
		`tap: {amqp: "http://u:hunter2@h/"}`:                                           "must be an amqp or amqps URL",
		`tap: {amqp: "amqp://u:hunter2@h:port/"}`:                                      "must be an amqp or amqps URL",
		`tap: {amqp: "amqp://u:hun%ter2@h/"}`:                                          "@ as %40",
		`tap: {amqp: "amqp://h:5672/%2F"}`:                                             "needs a user of its own",
		`tap: {amqp: "amqp://u:hunter2@h/shop"}`:                                       `must end in the broker's vhost, "/", with / as %2F`,
		`vhost: shop, tap: {amqp: "amqp://u:hunter2@h/%2F"}`:                           `must end in the broker's vhost, "shop"`,
		`tap: {amqp: "amqp://u:hunter2@h/", stream: orders}`:                           `brokers.rabbit.tap.stream: must begin with "idemscope."`,
		`tap: {amqp: "amqp://u:hunter2@h/", dead_letters: orders.dlq}`:                 `brokers.rabbit.tap.dead_letters: must begin with "idemscope."`,
		`tap: {amqp: "amqp://u:hunter2@h/", streem: x}`:                                `brokers.rabbit.tap.streem: unknown key; did you mean "stream"?`,
		`trace: {amqp: "amqp://u:hunter2@h/"}`:                                         "brokers.rabbit.trace.user: is missing; name a RabbitMQ user with the tag administrator",
		`trace: {user: admin}`:                                                         "brokers.rabbit.trace.amqp: is missing",
		`trace: {amqp: "amqp://u:hunter2@h/", user: a, password: p, password_file: f}`: "brokers.rabbit.trace",
	} {
		_, err := parse(withBroker(keys), nil)
		wantProblem(t, err, want)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error:\n%v", keys, err)
		}
	}
}
