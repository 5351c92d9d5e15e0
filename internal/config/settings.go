package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"idemscope/internal/flow"
)

const year = 365 * 24 * time.Hour

// config reads the outermost section. Parts that others refer to come first,
// whatever their order in the file.
func (r *reader) config(root *section) *Config {
	c := &Config{file: r.file, places: r.places}
	web := root.listener(c)
	c.MetricsListen = root.metricsListener()
	c.TimeZone = root.zone("time_zone")
	root.named("mysql", func(name string, s *section) { c.MySQL = append(c.MySQL, s.mysql(name)) })
	root.named("redis", func(name string, s *section) { c.Redis = append(c.Redis, s.redis(name)) })
	root.named("brokers", func(name string, s *section) { c.Brokers = append(c.Brokers, s.broker(name)) })
	root.named("ledgers", func(name string, s *section) { c.Ledgers = append(c.Ledgers, s.ledger(name)) })
	root.flows(c)
	c.Counters = root.counters(c)
	c.Console = root.console()
	root.guarded(c, web)
	c.Exporter = root.exporter()
	c.Cleanup = root.cleanup(c)
	root.close()
	return c
}

// listener reads where to listen. Beyond this machine that needs somebody who asks
// who is there, because the console shows business keys: see guarded.
func (s *section) listener(c *Config) webFile {
	c.Listen = s.text("listen")
	path, text, _ := s.namedFile("web_config")
	web := readWebFile(text)
	c.WebConfig, c.WebTLS, c.WebAuth = path, web.TLS.Certificate != "", web.authenticates()
	c.WebUsers = len(web.Users) > 0
	if c.Listen == "" {
		c.Listen = "127.0.0.1:9877"
	}
	return web
}

// metricsListener reads the second address. It shows no business key, so it may
// be open: that is what lets a health check through when users are set.
func (s *section) metricsListener() string {
	listen := s.text("metrics_listen")
	if listen != "" {
		s.hostOf("metrics_listen", listen)
	}
	return listen
}

// hostOf returns the host of a host:port, or reports that it is none.
func (s *section) hostOf(key, listen string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		v := s.value(key)
		s.problemf(v.at, v.path, `must be host:port, such as "127.0.0.1:9877"`)
	}
	return host, err == nil
}

// webFile is what matters here of an exporter-toolkit file. Whether the file is
// right otherwise is for the toolkit to say.
type webFile struct {
	Users map[string]string `yaml:"basic_auth_users"`
	TLS   struct {
		Certificate string `yaml:"cert_file"`
		ClientAuth  string `yaml:"client_auth_type"`
	} `yaml:"tls_server_config"`
}

func readWebFile(text []byte) (w webFile) {
	if yaml.Unmarshal(text, &w) != nil {
		return webFile{}
	}
	return w
}

// authenticates reports whether the file demands a password or a client certificate.
func (w webFile) authenticates() bool {
	return len(w.Users) > 0 || w.TLS.ClientAuth == "RequireAndVerifyClientCert"
}

// loopback reports whether only this machine can reach the host. Names other
// than localhost are not looked up: what they mean may change.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (s *section) counters(c *Config) *Counters {
	part := s.section("counters")
	if part == nil {
		return nil
	}
	defer part.close()
	redis := part.ref("redis", "redis")
	return &Counters{Redis: redis, Prefix: c.keyPrefix(redis) + part.text("prefix"), Trail: part.flag("trail")}
}

// keyPrefix returns the key prefix of the named Redis.
func (c *Config) keyPrefix(redis string) string {
	for _, r := range c.Redis {
		if r.Name == redis {
			return r.KeyPrefix
		}
	}
	return ""
}

func (s *section) console() Console {
	part := s.optional("console")
	defer part.close()
	language := part.word("language", "auto", "auto", string(flow.English), string(flow.Chinese))
	if language == "auto" {
		language = ""
	}
	return Console{
		Language:      flow.Language(language),
		LookupTimeout: part.duration("lookup_timeout", time.Second, 100*time.Millisecond, 30*time.Second),
		Actions:       part.flag("actions"),
		Grafana:       part.grafana(),
		Environment:   part.environment(),
		PathPrefix:    part.pathPrefix(),
		Auth:          part.auth(),
		Mask:          part.mask(),
		Audit:         part.audit(),
	}
}

// auditFile is where attempts are kept unless the file says otherwise.
const auditFile = "idemscope-audit.jsonl"

// audit reads the path of the audit file.
func (s *section) audit() string {
	part := s.section("audit")
	if part == nil {
		return s.filePath(auditFile)
	}
	defer part.close()
	return s.filePath(part.required("file", "name the file that keeps every attempt to change something"))
}

// grafana reads where the dashboards are. The address stands in pages, so it must hold no password.
func (s *section) grafana() string {
	text := s.text("grafana")
	if text == "" {
		return ""
	}
	v := s.value("grafana")
	// Nothing of the URL is quoted in an error: it may hold a password.
	address, err := url.Parse(text)
	switch {
	case err == nil && address.User != nil, strings.Contains(text, "@"):
		s.problemf(v.at, v.path, "must not hold a user or password: the address stands in pages")
	case err != nil || address.Hostname() == "" || address.Scheme != "http" && address.Scheme != "https":
		s.problemf(v.at, v.path, `must be an http or https URL, such as "https://grafana.example.com"`)
	case address.RawQuery != "" || address.Fragment != "":
		s.problemf(v.at, v.path, "must end before ? and #")
	}
	return strings.TrimRight(text, "/")
}

func (s *section) exporter() Exporter {
	part := s.optional("exporter")
	defer part.close()
	return Exporter{
		Interval:    part.duration("interval", 5*time.Second, time.Second, 10*time.Minute),
		Lookback:    part.duration("lookback", 24*time.Hour, time.Minute, year),
		MaxBizTypes: part.whole("max_biz_types", 200, 1, 10000),
		Findings:    part.findings(),
		Sweep:       part.sweep(),

		LockExpirations: part.flag("lock_expirations"),
	}
}

func (s *section) sweep() Sweep {
	part := s.optional("sweep")
	defer part.close()
	const slowest = 100 // a slower sweep would tell of a past that is gone
	sweep := Sweep{
		KeysPerSecond: part.whole("keys_per_second", 2000, 0, 100_000),
		Pause:         part.duration("pause", time.Minute, time.Second, 24*time.Hour),
	}
	if v := part.value("keys_per_second"); sweep.KeysPerSecond > 0 && sweep.KeysPerSecond < slowest {
		part.problemf(v.at, v.path, "must be 0 (no sweep) or a whole number from %d to 100000", slowest)
	}
	return sweep
}

func (s *section) findings() Findings {
	part := s.optional("findings")
	defer part.close()
	return Findings{PerSecond: part.whole("per_second", 20, 0, 1000)}
}

// optional is section, but an empty one instead of nil, so that defaults apply.
func (s *section) optional(key string) *section {
	if part := s.section(key); part != nil {
		return part
	}
	return &section{reader: s.reader, path: s.pathOf(key), at: s.at}
}
