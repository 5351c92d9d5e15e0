package lockstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/testkit"
)

func TestTLS(t *testing.T) {
	certFile, keyFile, pool := selfSigned(t)
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server := testkit.StartRedis(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-auth-clients", "no")
	secure := []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}

	s := open(t, Options{Addresses: secure, TLS: &tls.Config{RootCAs: pool}})
	if got := s.Look(t.Context(), "k"); got.State != flow.Absent {
		t.Errorf("%s %v", got.State, got.Reason)
	}
	s = open(t, Options{Addresses: secure, TLS: &tls.Config{}})
	wantError(t, s.Look(t.Context(), "k"), "TLS certificate is not trusted")
	s = open(t, Options{Addresses: secure, TLS: &tls.Config{RootCAs: pool, ServerName: "redis.example"}})
	wantError(t, s.Look(t.Context(), "k"), "TLS certificate is not trusted")
	s = open(t, Options{Addresses: secure})
	wantError(t, s.Look(t.Context(), "k"), "wants TLS")
	s = open(t, Options{Addresses: []string{server.Addr}, TLS: &tls.Config{RootCAs: pool}, Timeout: 200 * time.Millisecond})
	wantError(t, s.Look(t.Context(), "k"), "does not use TLS keeps silent")
}

// selfSigned writes a certificate for 127.0.0.1 and returns a pool that trusts it.
func selfSigned(t testing.TB) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, data := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return certFile, keyFile, pool
}
