package config

import (
	"strings"
	"testing"
)

func TestTheUsersThatMayChangeSomethingAreRead(t *testing.T) {
	text := strings.NewReplacer(
		`addresses: ["127.0.0.1:6379"]}`, `addresses: ["127.0.0.1:6379"], act: {user: act, password: "${P}"}}`,
		"user: monitor}", `user: monitor, act: {amqp: "amqp://act:${P}@h:5672/%2F"}}`,
	).Replace(minimal("console: {actions: true, audit: {file: logs/audit.jsonl}}\n"))
	c := mustParse(t, text, map[string]string{"P": marker})
	if a := c.Redis[0].Act; a.User != "act" || a.Password.Reveal() != marker {
		t.Errorf("%q %d", a.User, len(a.Password))
	}
	if c.Brokers[0].Replay.Reveal() != "amqp://act:"+marker+"@h:5672/%2F" || c.Console.Audit != "logs/audit.jsonl" {
		t.Errorf("%q", c.Console.Audit)
	}
	redacted, err := c.Redacted()
	if err != nil || strings.Contains(string(redacted), marker) || !strings.Contains(string(redacted), "amqp://act:%3Csecret%3E@h:5672/") {
		t.Errorf("%v\n%s", err, redacted)
	}
	wantSame(t, c)
	for way, text := range printed(t, c) {
		if strings.Contains(text, marker) {
			t.Errorf("through %s: %s", way, text)
		}
	}
}

func TestTheAuditFileStandsBesideTheConfiguration(t *testing.T) {
	for text, want := range map[string]string{"": "/etc/idemscope/idemscope-audit.jsonl", "console: {audit: {file: a}}\n": "/etc/idemscope/a", "console: {audit: {file: /var/log/a}}\n": "/var/log/a"} {
		c, err := Parse("/etc/idemscope/idemscope.yaml", []byte(minimal(text)), environment(nil), noFile)
		if err != nil || c.Console.Audit != want {
			t.Errorf("%q: %v %+v", text, err, c)
		}
	}
}

func TestWhatIsWrongWithThemIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		minimal("console: {audit: {}}\n"):                                           "console.audit.file: is missing; name the file that keeps every attempt",
		minimal("console: {audit: audit.jsonl}\n"):                                  "console.audit: must be a group of keys",
		withBroker(`act: {}`):                                                       "brokers.rabbit.act.amqp: is missing",
		withBroker(`act: {amqp: "amqp://u:hunter2@h/shop"}`):                        `brokers.rabbit.act.amqp: must end in the broker's vhost`,
		withBroker(`act: {amqp: "amqp://u:hunter2@h/", u: x}`):                      "brokers.rabbit.act.u: unknown key",
		strings.Replace(minimal(""), `:6379"]}`, `:6379"], act: {password: x}}`, 1): "redis.main.act.user: is missing; name a Redis user",
	} {
		_, err := parse(text, nil)
		wantProblem(t, err, want)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in the error:\n%v", err)
		}
	}
}
