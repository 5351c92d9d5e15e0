package config

import (
	"net/url"
	"strings"
)

// Tap is the credential with which a broker's tap is made and followed.
type Tap struct {
	// AMQP is an amqp or amqps URL with user, password and the broker's vhost.
	AMQP Secret
	// Stream and DeadLetters are the names of the tap's queues; empty means the
	// tap's own names.
	Stream, DeadLetters string
}

// Trace is the credential with which a broker's tracing is armed.
type Trace struct {
	// AMQP is an amqp or amqps URL with user, password and the broker's vhost.
	AMQP Secret
	// User and Password are those of an administrator, for the management API.
	User     string
	Password Secret
}

// amqpHelp says what belongs under amqp.
const amqpHelp = `write "amqp://user:${VARIABLE}@host:5672/%2F"`

// ownNames is what every name of a queue of ours begins with, so that one
// permission covers them.
const ownNames = "idemscope."

// tap reads the section tap of a broker; empty without one.
func (s *section) tap(b *Broker) Tap {
	part := s.section("tap")
	if part == nil {
		return Tap{}
	}
	defer part.close()
	return Tap{AMQP: part.amqp(b), Stream: part.ownName("stream"), DeadLetters: part.ownName("dead_letters")}
}

// trace reads the section trace of a broker; empty without one.
func (s *section) trace(b *Broker) Trace {
	part := s.section("trace")
	if part == nil {
		return Trace{}
	}
	defer part.close()
	return Trace{
		AMQP: part.amqp(b), User: part.required("user", "name a RabbitMQ user with the tag administrator, who may turn tracing on and off"),
		Password: part.password(),
	}
}

// replay reads the section act of a broker; empty without one.
func (s *section) replay(b *Broker) Secret {
	part := s.section("act")
	if part == nil {
		return ""
	}
	defer part.close()
	return part.amqp(b)
}

// amqp reads an AMQP URL. Nothing of it is quoted in an error: it holds a password.
func (s *section) amqp(b *Broker) Secret {
	text := s.required("amqp", amqpHelp)
	if text == "" {
		return ""
	}
	v := s.value("amqp")
	address, err := url.Parse(text)
	switch {
	case err != nil || address.Scheme != "amqp" && address.Scheme != "amqps" || address.Hostname() == "" || strings.Contains(text, " "):
		s.problemf(v.at, v.path, "must be an amqp or amqps URL; in user, password and vhost write / as %%2F, @ as %%40, : as %%3A, and %% as %%25; %s", amqpHelp)
	case address.User == nil || address.User.Username() == "":
		s.problemf(v.at, v.path, "needs a user of its own; %s", amqpHelp)
	case vhostOf(address) != b.Vhost:
		s.problemf(v.at, v.path, "must end in the broker's vhost, %q, with / as %%2F", b.Vhost)
	}
	return Secret(text)
}

// vhostOf is the vhost that an AMQP URL names: "/" when it names none.
func vhostOf(address *url.URL) string {
	if name := strings.TrimPrefix(address.Path, "/"); name != "" {
		return name
	}
	return "/"
}

// ownName reads the optional name of a queue of ours.
func (s *section) ownName(key string) string {
	name := s.text(key)
	if name != "" && !strings.HasPrefix(name, ownNames) {
		v := s.value(key)
		s.problemf(v.at, v.path, "must begin with %q, so that the tap's user needs rights on such names only", ownNames)
	}
	return name
}

func (t Tap) redacted() *group {
	g := &group{}
	g.text("amqp", redactedURL(t.AMQP))
	g.text("stream", t.Stream)
	g.text("dead_letters", t.DeadLetters)
	return g
}

func (t Trace) redacted() *group {
	g := &group{}
	g.text("amqp", redactedURL(t.AMQP))
	g.text("user", t.User)
	g.text("password", t.Password.String())
	return g
}

func (b Broker) redactedReplay() *group {
	g := &group{}
	g.text("amqp", redactedURL(b.Replay))
	return g
}

// redactedURL masks the password of a valid URL.
func redactedURL(secret Secret) string {
	address, err := url.Parse(secret.Reveal())
	if err != nil || address.User == nil {
		return secret.String()
	}
	if _, has := address.User.Password(); has {
		address.User = url.UserPassword(address.User.Username(), masked)
	}
	address.RawQuery, address.Fragment = "", ""
	return address.String()
}
