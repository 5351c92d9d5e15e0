package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// What a variable or a file holds never has a meaning in YAML.
func TestHostilePasswords(t *testing.T) {
	for _, password := range []string{
		"simple", "a: b", "#no comment", "it's", `"quoted"`, "new\nline", "tab\there", "{a: b}", "[x", "*alias", "&anchor", "!tag", "%x", "@x", "`x",
		"${NOT_A_VARIABLE}", "$$", "$", " spaces ", "null", "~", "true", "0123", "密码", "\xff\xfe", "trailing\r", "- x", "|", ">", "a,b",
	} {
		with := func(keys string) string {
			return strings.Replace(minimal(""), "user: idemscope}", "user: idemscope, "+keys+"}", 1)
		}
		c := mustParse(t, with(`password: "${PASSWORD}"`), map[string]string{"PASSWORD": password})
		if got := c.MySQL[0].Password.Reveal(); got != password {
			t.Errorf("from a variable: %q became %q", password, got)
		}
		c = mustParse(t, strings.Replace(minimal(""), "  main: {address: \"127.0.0.1:3306\", database: shop, user: idemscope}", "  main:\n    address: h:1\n    database: d\n    user: u\n    password: ${PASSWORD}", 1), map[string]string{"PASSWORD": password})
		if got := c.MySQL[0].Password.Reveal(); got != password {
			t.Errorf("from a variable without quotes: %q became %q", password, got)
		}
		for _, end := range []string{"", "\n", "\r\n"} {
			if end == "\n" && strings.HasSuffix(password, "\r") {
				continue
			}
			c, err := Parse("etc/test.yaml", []byte(with("password_file: secret")), environment(nil), files(map[string]string{"etc/secret": password + end}))
			if err != nil {
				t.Errorf("from a file: %v", err)
			} else if got := c.MySQL[0].Password.Reveal(); got != password {
				t.Errorf("from a file: %q became %q", password+end, got)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	variables := map[string]string{"A": "a", "EMPTY": "", "NESTED": "${A}$$", "_1": "one", "DB": "7", "REPLICA": "true", "TTL": "15s"}
	for text, want := range map[string]string{
		"plain": "plain", "${A}": "a", "x${A}y${A}z": "xayaz", "${EMPTY}": "", "${EMPTY:-d}": "d", "${NONE:-d}": "d", "${NONE:-}": "", "${A:-d}": "a",
		"${NONE:-a:-b c#d}": "a:-b c#d", "${NESTED}": "${A}$$", "$$": "$", "$${A}": "${A}", "$$$${A}": "$${A}", "$A": "$A", "5$": "5$", "${_1}": "one", "{$}": "{$}",
	} {
		r := &reader{env: environment(variables)}
		if got, ok := r.expand(value{}, text); got != want || !ok {
			t.Errorf("%s became %q (%v), want %q", text, got, r.problems, want)
		}
	}
	for _, text := range []string{"${NONE}", "${", "${}", "${A", "${1A}", "${A-x}", "${ A}", "${:-x}", "${A${A}}"} {
		r := &reader{env: environment(variables)}
		if got, ok := r.expand(value{}, text); ok || len(r.problems) != 1 {
			t.Errorf("%s became %q (%v), want one problem", text, got, r.problems)
		}
	}
	c := mustParse(t, strings.NewReplacer(
		"user: idemscope}", `user: idemscope, replica: "${REPLICA}", max_connections: "${DB}"}`,
		"ledger: orders}", `ledger: orders, stale_after: "${TTL}"}`).Replace(minimal("")), variables)
	if m := c.MySQL[0]; !m.Replica || m.MaxConnections != 7 || c.Flows[0].StaleAfter != 15*time.Second {
		t.Errorf("numbers from variables: %+v", m)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"5 minutes": "write 5m", "5min": "write 5m", "5M": "write 5m", "30 sec": "write 30s", "2days": "write 48h", "1 week": "write 168h", "100 millis": "write 100ms", "5分钟": "write 5m",
		"15": "write 15s if seconds", "PT5M": "write a number and a unit", "": "write a number and a unit", "5 m 3": "write a number and a unit", "5 parsecs": "the units are",
	} {
		if d, err := parseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v; want %q", text, d, err, want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 5 * time.Minute: "5m", 10 * time.Second: "10s", 3605 * time.Second: "1h0m5s", 100 * time.Millisecond: "100ms", 0: "0s", 365 * 24 * time.Hour: "8760h",
	} {
		got := shortDuration(d)
		if back, err := time.ParseDuration(got); got != want || back != d || err != nil {
			t.Errorf("%s is written %s, want %s", d, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	candidates := []string{"address", "socket", "db", "user", "tls"}
	for word, want := range map[string]string{"adress": "address", "addresss": "address", "adderss": "address", "bd": "db", "socked": "socket", "usr": "user", "ssl": "", "port": "", "host": "", "用户": "", "": ""} {
		if got, _ := nearest(word, candidates); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// A text of any kind reads back from the effective configuration.
func TestRedactedReadsBack(t *testing.T) {
	for _, text := range []string{"a: b", "#x", "it's", `"q"`, "two\nlines", "\n", "tab\t", "{a}", "[a", "*", "&a", "!a", "%a", "@a", "`a", "${A}", "$$", "$", " a ", "null", "~", "true", "yes", "0123", "1e3", ".5", "+08:00", "12:30:45", "-", "- a", "?", ": ", "|", ">-", "a,b", "密", "\u2028", "\x01", "a\\b", "<<", "=", "---", "...", "2025-01-01", "0x1F", ".inf"} {
		c := mustParse(t, strings.NewReplacer(
			"[order_paid]", `["b${X}", x]`,
			"database: shop", `database: "${X}"`,
			"preset: idempotent_record", `preset: "${X}", columns: {id: "${X}"}, status: {completed: ["${X}"]}`,
		).Replace(minimal(`counters: {redis: main, prefix: "${X}"}`)), map[string]string{"X": text})
		if got := c.MySQL[0].Database; got != text {
			t.Errorf("%q became %q", text, got)
		}
		wantSame(t, c)
		once, err := c.Redacted()
		if err != nil {
			t.Fatal(err)
		}
		back := mustParse(t, string(once), nil)
		if got := back.MySQL[0].Database; got != text {
			t.Errorf("%q reads back as %q from\n%s", text, got, once)
		}
	}
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	disk := files(map[string]string{"etc/ca.pem": cert, "/abs/cert.pem": cert, "etc/key.pem": key})
	with := func(keys string) string {
		return strings.Replace(minimal(""), "user: idemscope}", "user: idemscope, tls: {"+keys+"}}", 1)
	}
	c, err := Parse("etc/test.yaml", []byte(with("ca_file: ca.pem, cert_file: /abs/cert.pem, key_file: key.pem, server_name: db.example.com")), environment(nil), disk)
	if err != nil {
		t.Fatal(err)
	}
	got := c.MySQL[0].TLS
	if client := got.Client(); client.ServerName != "db.example.com" || client.InsecureSkipVerify || client.RootCAs == nil || len(client.Certificates) != 1 {
		t.Errorf("client: %+v", client)
	}
	if got.CAFile != "etc/ca.pem" || got.CertFile != "/abs/cert.pem" || got.KeyFile != "etc/key.pem" {
		t.Errorf("files: %+v", got)
	}
	got.Client().ServerName = "changed"
	if got.Client().ServerName != "db.example.com" {
		t.Error("Client is not a copy")
	}
	redacted, err := c.Redacted()
	if err != nil || !strings.Contains(string(redacted), "key_file: etc/key.pem") || strings.Contains(string(redacted), "PRIVATE") {
		t.Errorf("redacted: %v\n%s", err, redacted)
	}

	if c := mustParse(t, with(""), nil); c.MySQL[0].TLS != nil || c.MySQL[0].TLS.Client() != nil {
		t.Error("an empty tls turns TLS on")
	}
	if c := mustParse(t, with("insecure_skip_verify: true"), nil); !c.MySQL[0].TLS.Client().InsecureSkipVerify {
		t.Error("insecure_skip_verify has no effect")
	}
	_, other := selfSigned(t)
	_, err = Parse("etc/test.yaml", []byte(with("cert_file: c, key_file: k")), environment(nil), files(map[string]string{"etc/c": cert, "etc/k": other}))
	wantProblem(t, err, "mysql.main.tls.cert_file: cert_file and key_file cannot be used together: tls: private key does not match public key")
}

// selfSigned returns a certificate and its key in PEM form.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", encoded)
}
