package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const marker = "hunter2"

// printed returns v in every way in which values end up in logs, errors and output.
func printed(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out["json"], out["yaml"] = string(asJSON), string(asYAML)
	var buffer bytes.Buffer
	for name, handler := range map[string]slog.Handler{"slog json": slog.NewJSONHandler(&buffer, nil), "slog text": slog.NewTextHandler(&buffer, nil)} {
		buffer.Reset()
		slog.New(handler).Info("connect", "value", v, slog.Group("group", "value", v), "list", []any{v})
		out[name] = buffer.String()
	}
	return out
}

func TestSecretIsMasked(t *testing.T) {
	type nested struct {
		User     string
		Password Secret
		Pointer  *Secret
		List     []Secret
		Map      map[string]Secret
	}
	s := Secret(marker)
	for _, v := range []any{s, &s, nested{"u", s, &s, []Secret{s}, map[string]Secret{"k": s}}, &nested{Password: s}, []Secret{s}, MySQL{Password: s}} {
		for way, text := range printed(t, v) {
			if strings.Contains(text, marker) || strings.Contains(text, fmt.Sprintf("%x", marker)) {
				t.Errorf("%T through %s shows the secret: %s", v, way, text)
			}
		}
	}
	for way, text := range printed(t, s) {
		// JSON may write < and > as escapes; both read back alike.
		if text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text); !strings.Contains(text, "<secret>") {
			t.Errorf("through %s: %q, want <secret>", way, text)
		}
	}
	if text, err := s.MarshalText(); err != nil || string(text) != "<secret>" {
		t.Errorf("MarshalText: %q, %v", text, err)
	}
	if s.Reveal() != marker || s.String() != "<secret>" || s.GoString() != "<secret>" {
		t.Errorf("Reveal %q, String %q, GoString %q", s.Reveal(), s.String(), s.GoString())
	}
}

func TestEmptySecretPrintsEmpty(t *testing.T) {
	for way, text := range printed(t, Secret("")) {
		if strings.Contains(text, "secret") {
			t.Errorf("through %s: %q", way, text)
		}
	}
	if got := fmt.Sprintf("[%v|%+v|%#v|%s|%q]", Secret(""), Secret(""), Secret(""), Secret(""), Secret("")); got != "[||||]" {
		t.Errorf("got %s", got)
	}
}

// Wherever a password stands and whatever is wrong around it, no error and no
// output shows it.
func TestPasswordNeverShows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const special = "abz09:#'\"`@%&*!|>?{}[],-~$\\=;/<"
	piece := func() string {
		var b strings.Builder
		for range random.IntN(4) {
			b.WriteByte(special[random.IntN(len(special))])
		}
		return b.String()
	}
	quotings := []func(string) string{
		func(s string) string { return s },
		func(s string) string { return "'" + s + "'" },
		func(s string) string { return `"` + s + `"` },
		func(s string) string { return "|" + s },
		func(s string) string { return "[" + s + "]" },
		func(s string) string { return "{" + s + "}" },
		func(s string) string { return "${" + s },
		func(s string) string { return "!!int " + s },
	}
	variable := regexp.MustCompile(`\$\{\w*` + marker + `\w*(:-|\})`)
	keys := []string{"password", "pasword", "password_file", "sentinel_password"}
	for range 2_000 {
		password := piece() + marker + piece()
		written := quotings[random.IntN(len(quotings))](password)
		if variable.MatchString(written) {
			continue // The name of a missing variable is no secret.
		}
		key := keys[random.IntN(len(keys))]
		if key == "password_file" {
			written = "secret"
		}
		block := minimal("") + "  broken: {biz_types: [order_paid], ledger: orders}\n"
		block = strings.Replace(block, "redis:\n", fmt.Sprintf("  other:\n    address: h:1\n    %s: %s\n    database: d\n    user: 7\nredis:\n", key, written), 1)
		braces := strings.Replace(minimal(""), "redis:\n", fmt.Sprintf("  other: {address: \"h:1\", database: d, %s: %s, user: u, x: 1}\nredis:\n", key, written), 1)
		for _, text := range []string{block, braces} {
			c, err := Parse("test.yaml", []byte(text), environment(map[string]string{"V": password}), files(map[string]string{"secret": password}))
			if err != nil {
				if strings.Contains(err.Error(), marker) {
					t.Fatalf("the error shows the password:\n%v\n%s", err, text)
				}
				continue
			}
			redacted, err := c.Redacted()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(redacted), marker) {
				t.Fatalf("the effective configuration shows the password:\n%s", redacted)
			}
		}
	}
}

// A whole configuration may be logged by mistake.
func TestConfigPrintsNoSecret(t *testing.T) {
	text := strings.NewReplacer(
		"user: idemscope}", `user: idemscope, password: "${P}"}`,
		`["127.0.0.1:6379"]}`, `["127.0.0.1:6379"], mode: sentinel, master_name: m, password: "${P}", sentinel_password: "${P}"}`,
		"user: monitor}", `user: monitor, password: "${P}"}`).Replace(minimal(""))
	c := mustParse(t, text, map[string]string{"P": marker})
	if c.Redis[0].SentinelPassword.Reveal() != marker || c.Brokers[0].Password.Reveal() != marker {
		t.Fatal("the passwords were not read")
	}
	redacted, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(redacted), "<secret>"); n != 4 {
		t.Errorf("%d masked secrets, want 4:\n%s", n, redacted)
	}
	for way, text := range printed(t, struct {
		MySQL   []MySQL
		Redis   []Redis
		Brokers []Broker
	}{c.MySQL, c.Redis, c.Brokers}) {
		if strings.Contains(text, marker) {
			t.Errorf("through %s: %s", way, text)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, *c); strings.Contains(text, marker) || strings.Contains(string(redacted), marker) {
		t.Errorf("shown: %s", text)
	}
}
