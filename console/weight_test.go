package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// maxTransferred is what a page with all its files may weigh on the line.
const maxTransferred = 100 << 10

// TestWeight: the pages that people open first come small, compressed, and with
// everything that they load.
func TestWeight(t *testing.T) {
	server := serve(t, findingsShop(t, shopFindings(t)))
	for _, path := range []string{"/", keyPath("order_paid", orderNo), "/findings"} {
		sum := transferred(t, server.URL+path)
		page := get(t, server.URL+path).document(t)
		files := 0
		for _, n := range page.elements() {
			for _, name := range []string{"href", "src"} {
				if address, ok := attribute(n, name); ok && strings.HasPrefix(address, "./static/") {
					files++
					sum += transferred(t, server.URL+strings.TrimPrefix(address, "."))
				}
			}
		}
		if files != 3 || sum > maxTransferred || sum < 5000 {
			t.Errorf("%s: %d bytes with %d files", path, sum, files)
		}
		t.Logf("%s: %d bytes", path, sum)
	}
}

// transferred is how many bytes of body come over the line, and checks that they
// are gzip of what comes without it.
func transferred(t *testing.T, address string) int {
	t.Helper()
	raw := get(t, address, "Accept-Encoding", "gzip")
	if raw.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(raw.Header.Get("Vary"), "Accept-Encoding") {
		if len(raw.body) > smallest {
			t.Errorf("%s: %d bytes, not compressed", address, len(raw.body))
		}
		return len(raw.body)
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(raw.body)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, address, "Accept-Encoding", "identity")
	if plain.Header.Get("Content-Encoding") != "" || strings.Contains(address, "/static/") && plain.body != string(body) {
		t.Errorf("%s: not the same without gzip", address)
	}
	return len(raw.body)
}

// TestGzipIsRefused: who refuses gzip does not get it, and a tag names one of the two.
func TestGzipIsRefused(t *testing.T) {
	for header, want := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false, "": false, "xgzip": false, "gzip;q=1": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", header)
		if takesGzip(r) != want {
			t.Errorf("%q: %v", header, !want)
		}
	}
	server := serve(t, shop(t))
	page := get(t, server.URL+"/").document(t)
	for _, link := range page.all("link", "") {
		address, _ := attribute(link.Node, "href")
		if !strings.HasSuffix(address, ".css") {
			continue
		}
		address = server.URL + strings.TrimPrefix(address, ".")
		small, large := get(t, address, "Accept-Encoding", "gzip"), get(t, address, "Accept-Encoding", "identity")
		if small.Header.Get("ETag") == large.Header.Get("ETag") || len(small.body) >= len(large.body) {
			t.Errorf("%d bytes tagged %s, %d tagged %s", len(small.body), small.Header.Get("ETag"), len(large.body), large.Header.Get("ETag"))
		}
		if again := get(t, address, "Accept-Encoding", "gzip", "If-None-Match", small.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%d with its tag", again.StatusCode)
		}
	}
}
