package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Throttle says when a sweep has to wait.
type Throttle struct {
	// Replicas name servers that must keep up.
	Replicas []string
	// MaxReplicaLag is 1s to 1h.
	MaxReplicaLag time.Duration
	// MaxThreadsRunning and MaxHistoryLength bound what the server does; 0 means no bound.
	MaxThreadsRunning, MaxHistoryLength int
	// Duty is the part of the time in which a sweep works: 1 to 100 percent.
	Duty  int
	Query ThrottleQuery
	// HTTP is a URL that is asked whether the sweep may go on; empty without one. It
	// may hold credentials.
	HTTP     Secret
	Critical Critical
}

// ThrottleQuery is a question to the server of the ledger.
type ThrottleQuery struct {
	// SQL gives one number; empty without a query.
	SQL string
	// Max is the highest number with which the sweep goes on.
	Max int
}

// Critical are limits that end a run at once.
type Critical struct {
	// ThreadsRunning and HistoryLength: 0 means no such limit.
	ThreadsRunning, HistoryLength int
	// ReplicaLag is 1s to 24h; 0 means no such limit.
	ReplicaLag time.Duration
}

func (s *section) throttle() Throttle {
	part := s.optional("throttle")
	defer part.close()
	t := Throttle{
		MaxReplicaLag:     part.duration("max_replica_lag", 10*time.Second, time.Second, time.Hour),
		MaxThreadsRunning: part.whole("max_threads_running", 50, 0, 100_000),
		MaxHistoryLength:  part.whole("max_history_length", 100_000, 0, 1<<40),
		Duty:              part.whole("duty", 50, 1, 100),
		Query:             part.throttleQuery(),
		HTTP:              part.throttleHTTP(),
	}
	for _, it := range part.list("replicas") {
		if !slices.Contains(s.defined["mysql"], it.text) {
			part.problemf(it.at, it.path, "the section mysql has no %q; add the replica there, with a user that may ask for its lag", it.text)
		}
		t.Replicas = append(t.Replicas, it.text)
	}
	t.Critical = part.critical(t)
	return t
}

// locks are words of statements that do more than read.
var locks = regexp.MustCompile(`(?i)\bfor\s+(update|share)\b|\block\s+in\s+share\s+mode\b|\binto\s+(outfile|dumpfile|@)|\bget_lock\s*\(|;`)

// reads are the words with which a statement begins that reads.
var reads = regexp.MustCompile(`(?i)^\s*(select|with)\b`)

// maxNumber bounds what a query may be compared with.
const maxNumber = 1_000_000_000_000_000

// throttleQuery reads the query that may hold the task up.
func (s *section) throttleQuery() (q ThrottleQuery) {
	part := s.section("query")
	if part == nil {
		return q
	}
	defer part.close()
	q.SQL = part.required("sql", `write a SELECT that gives one number, such as "SELECT COUNT(*) FROM jobs WHERE running = 1"`)
	q.Max = part.whole("max", 0, -maxNumber, maxNumber)
	if v := part.value("max"); v.node == nil {
		part.missing(v, "write the highest number with which the cleanup goes on")
	}
	v := part.value("sql")
	switch {
	case q.SQL == "":
	case !reads.MatchString(q.SQL):
		part.problemf(v.at, v.path, "must begin with SELECT or WITH")
	case locks.MatchString(q.SQL):
		part.problemf(v.at, v.path, "must only read: one SELECT without FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE, INTO, GET_LOCK and semicolons")
	}
	return q
}

// throttleHTTP reads the URL that may hold the task up.
func (s *section) throttleHTTP() Secret {
	part := s.section("http")
	if part == nil {
		return ""
	}
	defer part.close()
	text := part.required("url", `write what to ask, such as "http://127.0.0.1:8080/cleanup"`)
	if text == "" {
		return ""
	}
	// Nothing of the URL is quoted in an error: it may hold a password.
	v := part.value("url")
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.Scheme != "http" && address.Scheme != "https" {
		part.problemf(v.at, v.path, `must be an http or https URL, such as "http://127.0.0.1:8080/cleanup"`)
	}
	return Secret(text)
}

// critical reads the limits that end a run. Each belongs above the one that only
// holds it up.
func (s *section) critical(t Throttle) (c Critical) {
	part := s.section("critical")
	if part == nil {
		return c
	}
	defer part.close()
	c = Critical{
		ThreadsRunning: part.whole("threads_running", 0, 1, 100_000),
		HistoryLength:  part.whole("history_length", 0, 1, 1<<40),
		ReplicaLag:     part.duration("replica_lag", 0, time.Second, 24*time.Hour),
	}
	for key, within := range map[string]bool{
		"threads_running": c.ThreadsRunning > t.MaxThreadsRunning,
		"history_length":  c.HistoryLength > t.MaxHistoryLength,
		"replica_lag":     c.ReplicaLag > t.MaxReplicaLag,
	} {
		v := part.value(key)
		switch {
		case v.node == nil || part.reported(v.path):
		case !within:
			part.problemf(v.at, v.path, "must be above max_%s of the throttle: the task waits first, and ends only when it gets worse", key)
		case key == "replica_lag" && len(t.Replicas) == 0:
			part.problemf(v.at, v.path, "has no effect without throttle.replicas; name the replicas there, or remove it")
		}
	}
	return c
}

func (t Throttle) redacted() *group {
	g, query, http, critical := &group{}, &group{}, &group{}, &group{}
	g.list("replicas", t.Replicas)
	g.duration("max_replica_lag", t.MaxReplicaLag)
	g.add("max_threads_running", t.MaxThreadsRunning)
	g.add("max_history_length", t.MaxHistoryLength)
	g.add("duty", t.Duty)
	if t.Query.SQL != "" {
		query.text("sql", t.Query.SQL)
		query.add("max", t.Query.Max)
	}
	g.part("query", query)
	if t.HTTP != "" {
		http.text("url", redactedPlace(t.HTTP))
	}
	g.part("http", http)
	if t.Critical.ThreadsRunning > 0 {
		critical.add("threads_running", t.Critical.ThreadsRunning)
	}
	if t.Critical.HistoryLength > 0 {
		critical.add("history_length", t.Critical.HistoryLength)
	}
	if t.Critical.ReplicaLag > 0 {
		critical.duration("replica_lag", t.Critical.ReplicaLag)
	}
	g.part("critical", critical)
	return g
}

// redactedPlace leaves only scheme, host and port of a URL: tokens stand in
// paths and queries, too.
func redactedPlace(secret Secret) string {
	address, err := url.Parse(secret.Reveal())
	if err != nil {
		return masked
	}
	bare := address.Scheme + "://" + address.Host
	if rest := strings.TrimPrefix(secret.Reveal(), bare); rest == "" || rest == "/" {
		return bare + rest
	}
	return bare + "/" + masked
}
