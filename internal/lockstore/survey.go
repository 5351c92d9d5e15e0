package lockstore

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// ServerSurvey is what one server of a store says about itself. Managed servers
// refuse some of the questions: the reason then stands beside what is not known.
type ServerSurvey struct {
	// Name is host:port in a cluster, else empty.
	Name string
	// Info is what INFO tells; not known when InfoWhy is set.
	Info    Info
	InfoWhy flow.Text
	// ClockAhead is how far the server's clock is ahead of this process's,
	// behind when negative, give or take ClockMargin; not known when ClockWhy is set.
	ClockAhead, ClockMargin time.Duration
	ClockWhy                flow.Text
	// Config is what CONFIG GET tells; not known when ConfigWhy is set.
	Config    Config
	ConfigWhy flow.Text
	// Rights are those of this user; not known when RightsWhy is set.
	Rights    Rights
	RightsWhy flow.Text
}

// Info is what matters here of INFO.
type Info struct {
	Version string
	// Role is master or slave. Replicas is how many replicas are connected to a master.
	Role     string
	Replicas int
	// MaxMemory is the limit in bytes, 0 for none. Policy is what happens at it;
	// empty when the server does not tell.
	MaxMemory uint64
	Policy    string
	// Evicted counts the keys evicted since the server started.
	Evicted uint64
	// AppendOnly: every write goes to a file.
	AppendOnly bool
	// Keys counts the keys of each database that has any.
	Keys map[int]uint64
}

// Config is what matters here of CONFIG GET. No password is ever asked for.
type Config struct {
	// Save is when snapshots are written; empty for never.
	Save string
	// Protected: without a password, the server takes connections of its own machine only.
	Protected bool
	// Bind lists the addresses on which it listens; empty for all.
	Bind string
}

// Rights are what a user may do.
type Rights struct {
	User string
	// Commands are the rules of Redis's ACL, such as "-@all +get"; empty for a
	// server older than 6, where every user may do everything.
	Commands string
}

// Writes reports whether the rules let a user run every command.
func (r Rights) Writes() bool {
	return r.Commands == "" || strings.Contains(" "+r.Commands+" ", " +@all ") && !strings.Contains(r.Commands, "-@write")
}

// DB is the configured database number.
func (s *Store) DB() int { return s.opts.DB }

// Remote reports whether a configured address is on another machine, as far as
// the address tells.
func (s *Store) Remote() bool {
	for _, address := range s.opts.Addresses {
		// check has found it to be host:port.
		host, _, _ := net.SplitHostPort(address)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return true
		}
	}
	return false
}

// HasPassword reports whether the configuration has a password for the servers.
func (s *Store) HasPassword() bool { return s.opts.Password != "" }

// Survey asks every primary of the store about itself, with commands that read
// only. The error is an *Error: a server could not be asked at all.
func (s *Store) Survey(ctx context.Context) ([]ServerSurvey, error) {
	servers, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	surveys := make([]ServerSurvey, len(servers))
	for i, at := range servers {
		if surveys[i], err = s.surveyOne(ctx, at); err != nil {
			return nil, err
		}
	}
	return surveys, nil
}

func (s *Store) surveyOne(ctx context.Context, at server) (ServerSurvey, error) {
	v := ServerSurvey{Name: at.name}
	text, err := s.wholeInfo(ctx, at.client)
	if v.InfoWhy, err = refusedText(err); err != nil {
		return v, err
	}
	v.Info = readInfo(text)
	for _, ask := range []func(context.Context, redis.UniversalClient, *ServerSurvey) error{s.askClock, s.askConfig, s.askRights} {
		if err := ask(ctx, at.client, &v); err != nil {
			return v, err
		}
	}
	return v, nil
}

// refusedText takes a refusal for an answer: its text. Any other error stays one.
func refusedText(err error) (flow.Text, error) {
	failure, ok := err.(*Error)
	if ok && failure.Refused() {
		return failure.Text, nil
	}
	return flow.Text{}, err
}

func (s *Store) wholeInfo(ctx context.Context, client redis.UniversalClient) (string, error) {
	var info *redis.StringCmd
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) { info = pipe.Info(ctx) })
	if failure := s.failure(cmds, took); failure != nil {
		return "", failure
	}
	return info.Val(), nil
}

func (s *Store) askClock(ctx context.Context, client redis.UniversalClient, v *ServerSurvey) error {
	var clock *redis.TimeCmd
	before := time.Now()
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) { clock = pipe.Time(ctx) })
	if failure := s.failure(cmds, took); failure != nil {
		var err error
		v.ClockWhy, err = refusedText(failure)
		return err
	}
	v.ClockAhead, v.ClockMargin = clock.Val().Sub(before.Add(took/2)), took/2
	return nil
}

func (s *Store) askConfig(ctx context.Context, client redis.UniversalClient, v *ServerSurvey) error {
	var answers [3]*redis.MapStringStringCmd
	names := [3]string{"save", "protected-mode", "bind"}
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, name := range names {
			answers[i] = pipe.ConfigGet(ctx, name)
		}
	})
	if failure := s.failure(cmds, took); failure != nil {
		var err error
		v.ConfigWhy, err = refusedText(failure)
		return err
	}
	v.Config = Config{Save: answers[0].Val()["save"], Protected: answers[1].Val()["protected-mode"] == "yes", Bind: answers[2].Val()["bind"]}
	return nil
}

// askRights asks who this user is and what its rules are.
func (s *Store) askRights(ctx context.Context, client redis.UniversalClient, v *ServerSurvey) error {
	var who *redis.Cmd
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) { who = pipe.Do(ctx, "acl", "whoami") })
	failure := s.failure(cmds, took)
	if failure != nil && unknownCommand.MatchString(failure.cause.Error()) {
		return nil // older than 6: there are no rules
	}
	if failure == nil {
		v.Rights.User, _ = who.Text()
		var rules *redis.Cmd
		cmds, took = s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) {
			rules = pipe.Do(ctx, "acl", "getuser", v.Rights.User)
		})
		if failure = s.failure(cmds, took); failure == nil {
			v.Rights.Commands = commandRules(rules)
			return nil
		}
	}
	var err error
	v.RightsWhy, err = refusedText(failure)
	return err
}

// commandRules finds the rules of commands among the pairs of ACL GETUSER.
func commandRules(cmd *redis.Cmd) string {
	pairs, _ := cmd.Slice()
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "commands" {
			rules, _ := pairs[i+1].(string)
			return rules
		}
	}
	return "?"
}

// readInfo reads what a server tells; what it leaves out stays zero.
func readInfo(text string) Info {
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(infoField(text, name), 10, 64)
		return n
	}
	i := Info{
		Version: infoField(text, "redis_version"), Role: infoField(text, "role"), Replicas: int(number("connected_slaves")),
		MaxMemory: number("maxmemory"), Policy: infoField(text, "maxmemory_policy"), Evicted: number("evicted_keys"),
		AppendOnly: number("aof_enabled") == 1, Keys: map[int]uint64{},
	}
	for line := range strings.Lines(text) {
		name, counts, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":keys=")
		db, err := strconv.Atoi(strings.TrimPrefix(name, "db"))
		if !ok || err != nil {
			continue
		}
		first, _, _ := strings.Cut(counts, ",")
		if n, err := strconv.ParseUint(first, 10, 64); err == nil {
			i.Keys[db] = n
		}
	}
	return i
}
