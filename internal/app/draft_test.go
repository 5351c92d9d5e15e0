package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/config"
	"idemscope/internal/flow"
	"idemscope/internal/lab"
	"idemscope/internal/testkit"
)

// initOf are the options that look at the stores of a configuration.
func initOf(t *testing.T, c *config.Config, output string) InitOptions {
	t.Helper()
	m, r, b := c.MySQL[0], c.Redis[0], c.Brokers[0]
	user, host, _ := strings.Cut(b.Management, "://")
	return InitOptions{
		MySQL:    fmt.Sprintf("%s@%s/%s", m.User, m.Address, m.Database),
		Redis:    fmt.Sprintf("%s/%d", r.Addresses[0], r.DB),
		RabbitMQ: fmt.Sprintf("%s://%s@%s", user, b.User, host), Vhost: b.Vhost,
		MySQLPassword:    NewCredential("MYSQL_PASSWORD", m.Password.Reveal(), ""),
		RedisPassword:    NewCredential("REDIS_PASSWORD", r.Password.Reveal(), ""),
		RabbitMQPassword: NewCredential("RABBIT_PASSWORD", b.Password.Reveal(), ""),
		Output:           output, Yes: true, Language: flow.English, Out: io.Discard,
	}
}

// TestADraftGivesTheVerdictsOfTheDemo drafts a configuration from the stores of
// the demo, which nobody described to it, and compares every sample.
func TestADraftGivesTheVerdictsOfTheDemo(t *testing.T) {
	l, err := lab.Start(t.Context(), lab.Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	if len(l.Missing) > 0 {
		t.Fatalf("servers are missing: %v", l.Missing)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "own.yaml")
	writeFile(t, own, string(l.Config()))
	c, err := config.Load(own)
	if err != nil {
		t.Fatal(err)
	}
	try := func(name string, lang flow.Language) {
		t.Run(name, func(t *testing.T) { compareDraft(t, l, c, own, filepath.Join(dir, name+".yaml"), lang) })
	}
	try("quiet", flow.English)
	try("in Chinese", flow.Chinese)
	ctx, cancel := context.WithCancel(t.Context())
	traffic := make(chan error, 1)
	go func() { traffic <- l.Run(ctx) }()
	testkit.Eventually(t, 2*time.Minute, func() bool { return l.Truth()["sign"].Completed > 10 }, "no traffic")
	try("under traffic", flow.English)
	cancel()
	if err := <-traffic; err != nil {
		t.Error(err)
	}
}

// compareDraft drafts a configuration and compares every sample with what the demo's own configuration says.
func compareDraft(t *testing.T, l *lab.Lab, c *config.Config, own, drafted string, lang flow.Language) {
	o := initOf(t, c, drafted)
	var report bytes.Buffer
	o.Language, o.Out = lang, &report
	exit, err := Init(t.Context(), o)
	text, _ := os.ReadFile(drafted)
	if err != nil || exit != 0 {
		t.Fatalf("exit code %d, %v\n%s", exit, err, &report)
	}
	password := c.Brokers[0].Password.Reveal()
	if strings.Contains(string(text)+report.String(), password) {
		t.Error("the password is shown")
	}
	t.Setenv("RABBIT_PASSWORD", password)
	if err := CheckConfig(drafted, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	// The draft suggests a TTL and leaves it to a person to put it in force.
	accepted := strings.TrimSuffix(drafted, ".yaml") + "-accepted.yaml"
	writeFile(t, accepted, regexp.MustCompile(`(?m)^( +)# (ttl: )`).ReplaceAllString(string(text), "$1$2"))
	for _, sample := range l.Samples() {
		t.Run(fmt.Sprintf("%s %.40q", sample.BizType, sample.BizID), func(t *testing.T) {
			want := oneVerdict(t, own, sample, sample.Flow)
			if got := oneVerdict(t, drafted, sample, ""); got != want {
				t.Errorf("the draft gives %s, the demo's own configuration %s", got, want)
			}
			if got := oneVerdict(t, accepted, sample, ""); got != want {
				t.Errorf("with the suggested TTLs the draft gives %s, the demo's own configuration %s", got, want)
			}
		})
	}
	if t.Failed() {
		t.Logf("%s\n%s", &report, text)
	}
}

// oneVerdict is code and layer of the only answer.
func oneVerdict(t *testing.T, file string, sample lab.Sample, flowName string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := Lookup(t.Context(), LookupOptions{Config: file, Words: []string{sample.BizType, sample.BizID}, Flow: flowName, JSON: true, Out: &out}); err != nil {
		t.Fatal(err)
	}
	var a answer.JSON
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	if a.Verdict.Code == "" {
		t.Fatalf("not one answer: %s", &out)
	}
	return fmt.Sprintf("%s/%s", a.Verdict.Code, a.Verdict.Layer)
}
