package config

import (
	"crypto/tls"
	"crypto/x509"
)

// TLS says how a store proves who it is, and who we are.
type TLS struct {
	// CAFile is the path of the certificates that are trusted; empty means those of the system.
	CAFile string
	// CertFile and KeyFile are the paths of our own certificate; both or none.
	CertFile, KeyFile string
	// ServerName is the name in the server's certificate; empty means the host that is dialled.
	ServerName string
	// InsecureSkipVerify: any certificate is taken.
	InsecureSkipVerify bool

	client *tls.Config
}

// Client returns a copy of the settings for a connection; nil for no TLS.
func (t *TLS) Client() *tls.Config {
	if t == nil {
		return nil
	}
	return t.client.Clone()
}

// tls reads the section tls. Left out or empty ({}) it means no TLS; any key in it
// turns TLS on.
func (s *section) tls() *TLS {
	part := s.section("tls")
	if part == nil || len(part.keys) == 0 {
		return nil
	}
	t := &TLS{client: &tls.Config{MinVersion: tls.VersionTLS12}}
	part.trust(t)
	part.identity(t)
	t.ServerName = part.text("server_name")
	t.InsecureSkipVerify = part.flag("insecure_skip_verify")
	t.client.ServerName, t.client.InsecureSkipVerify = t.ServerName, t.InsecureSkipVerify
	part.close()
	return t
}

// trust reads the certificates that are trusted.
func (s *section) trust(t *TLS) {
	path, pem, ok := s.namedFile("ca_file")
	if t.CAFile = path; !ok {
		return
	}
	t.client.RootCAs = x509.NewCertPool()
	if !t.client.RootCAs.AppendCertsFromPEM(pem) {
		v := s.value("ca_file")
		s.problemf(v.at, v.path, "the file %s holds no certificate in PEM form", path)
	}
}

// identity reads our own certificate and its key.
func (s *section) identity(t *TLS) {
	certPath, cert, certOK := s.namedFile("cert_file")
	keyPath, key, keyOK := s.namedFile("key_file")
	t.CertFile, t.KeyFile = certPath, keyPath
	switch certAt, keyAt := s.value("cert_file"), s.value("key_file"); {
	case certPath != "" && keyPath == "" && !s.reported(keyAt.path):
		s.problemf(certAt.at, certAt.path, "cert_file needs key_file")
	case keyPath != "" && certPath == "" && !s.reported(certAt.path):
		s.problemf(keyAt.at, keyAt.path, "key_file needs cert_file")
	case certOK && keyOK:
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			s.problemf(certAt.at, certAt.path, "cert_file and key_file cannot be used together: %v", err)
			return
		}
		t.client.Certificates = []tls.Certificate{pair}
	}
}
