package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

// smallConfig is a configuration whose one table is missing and whose stores
// need not be there: what is tested here is the program around them.
func smallConfig(t *testing.T, listen, more, bizType string) string {
	t.Helper()
	db := testkit.MySQL(t)
	return fmt.Sprintf(`
listen: %s
%s
mysql:
  main: {address: %q, database: %q, user: %q, password: %q}
ledgers:
  orders: {mysql: main, table: idempotent_record, preset: idempotent_record}
flows:
  payments: {biz_types: [%s], ledger: orders}
`, listen, more, db.Addr, db.Name, db.User, db.Password, bizType)
}

// serveConfig serves a configuration file and returns the console's address.
func serveConfig(t *testing.T, file string, reload <-chan os.Signal) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served, started := make(chan error, 1), make(chan string, 1)
	go func() {
		served <- Serve(ctx, ServeOptions{
			Config: file, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Reload: reload, Started: func(url string) { started <- url },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case address := <-started:
		return address
	case err := <-served:
		served <- nil
		t.Fatal(err)
	}
	return ""
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// post returns status and body.
func post(t *testing.T, address string, header http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "pay"))
	hangup := make(chan os.Signal)
	address := serveConfig(t, file, hangup)
	serves := func(bizType string) bool { return strings.Contains(get(t, address+"/"), ">"+bizType+"<") }
	successful := func() float64 { return scrape(t, address+"/metrics")["idemscope_config_last_reload_successful"] }
	if !serves("pay") || successful() != 1 {
		t.Fatal("the first configuration is not served")
	}

	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "refund"))
	if status, body := post(t, address+"/-/reload", nil); status != http.StatusOK {
		t.Fatalf("reload: %d %s", status, body)
	}
	if serves("pay") || !serves("refund") {
		t.Error("the new configuration is not served")
	}

	for name, bad := range map[string]struct {
		text   string
		status int
		says   string
	}{
		"broken":         {"flows: [", http.StatusUnprocessableEntity, "idemscope.yaml:1:"},
		"unknown preset": {strings.Replace(smallConfig(t, "127.0.0.1:0", "", "refund"), "preset: idempotent_record", "preset: nothing", 1), http.StatusInternalServerError, "preset"},
		"other address":  {smallConfig(t, "127.0.0.1:1", "", "refund"), http.StatusInternalServerError, "cannot change while the program runs"},
	} {
		writeFile(t, file, bad.text)
		status, body := post(t, address+"/-/reload", nil)
		if status != bad.status || !strings.Contains(body, bad.says) || !serves("refund") || successful() != 0 {
			t.Errorf("%s: %d %s; refund served: %v", name, status, body, serves("refund"))
		}
	}

	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "pay"))
	hangup <- os.Interrupt
	testkit.Eventually(t, 10*time.Second, func() bool { return serves("pay") }, "a signal does not reload")
	if successful() != 1 {
		t.Error("a reload that succeeded is not shown")
	}
}

func TestReloadIsRefusedToOtherSitesAndMethods(t *testing.T) {
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", "", "pay"))
	address := serveConfig(t, file, nil)
	if status, _ := post(t, address+"/-/reload", http.Header{"Sec-Fetch-Site": {"cross-site"}}); status != http.StatusForbidden {
		t.Errorf("another site: %d", status)
	}
	response, err := http.Get(address + "/-/reload")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", response.StatusCode)
	}
}

// TestUsersGuardTheConsoleAndNotTheSecondListener sets a password; health and
// metrics stay reachable on the second address, the console does not.
func TestUsersGuardTheConsoleAndNotTheSecondListener(t *testing.T) {
	dir := t.TempDir()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	// The hash is that of the password "idemscope", at the lowest cost.
	writeFile(t, filepath.Join(dir, "web.yaml"), "basic_auth_users: {ops: $2a$04$J33xkW.QecyLtLTfWT3rTeG1sDxA6/KH71Zc2k5c8GxzKcOn8m4sG}\n")
	file := filepath.Join(dir, "idemscope.yaml")
	writeFile(t, file, smallConfig(t, "127.0.0.1:0", fmt.Sprintf("web_config: web.yaml\nmetrics_listen: 127.0.0.1:%d", port), "pay"))
	address := serveConfig(t, file, nil)
	second := fmt.Sprintf("http://127.0.0.1:%d", port)
	for url, want := range map[string]int{
		address + "/": http.StatusUnauthorized, address + "/metrics": http.StatusUnauthorized, address + "/healthz": http.StatusUnauthorized,
		second + "/metrics": http.StatusOK, second + "/healthz": http.StatusOK, second + "/readyz": http.StatusOK,
		second + "/": http.StatusNotFound, second + "/key?type=pay&id=1": http.StatusNotFound,
	} {
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", url, response.StatusCode, want)
		}
	}
	request, err := http.NewRequest(http.MethodGet, address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("ops", "idemscope")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("with the password: %d", response.StatusCode)
	}
}

func TestHealth(t *testing.T) {
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "idemscope.yaml")
	writeFile(t, file, smallConfig(t, fmt.Sprintf("127.0.0.1:%d", port), "", "pay"))
	if err := Health(t.Context(), file); err == nil {
		t.Error("nothing runs, and it is healthy")
	}
	serveConfig(t, file, nil)
	if err := Health(t.Context(), file); err != nil {
		t.Error(err)
	}
}

// TestTLS serves with a certificate of web_config; the health check still works.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	authority := writeCertificate(t, dir)
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "web.yaml"), "tls_server_config: {cert_file: server.crt, key_file: server.key}\n")
	file := filepath.Join(dir, "idemscope.yaml")
	writeFile(t, file, smallConfig(t, fmt.Sprintf("127.0.0.1:%d", port), "web_config: web.yaml", "pay"))
	address := serveConfig(t, file, nil)
	if !strings.HasPrefix(address, "https://") {
		t.Errorf("the address to open is said to be %s", address)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/metrics", port))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("over TLS: %d", response.StatusCode)
	}
	if err := Health(t.Context(), file); err != nil {
		t.Errorf("health: %v", err)
	}
}

// writeCertificate writes server.crt and server.key for 127.0.0.1 and returns
// who trusts them.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	writeFile(t, filepath.Join(dir, "server.crt"), string(certificate))
	writeFile(t, filepath.Join(dir, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}
