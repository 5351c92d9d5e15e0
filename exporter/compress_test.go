package exporter

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestScrapesAreCompressedForThoseWhoAcceptIt asks over the wire.
func TestScrapesAreCompressedForThoseWhoAcceptIt(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(e.Handler())
	defer web.Close()
	for accepted, want := range map[string]string{"gzip": "gzip", "identity": "", "gzip;q=0": ""} {
		request, err := http.NewRequest(http.MethodGet, web.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", accepted)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Content-Encoding"); got != want {
			t.Errorf("accepting %q: sent as %q", accepted, got)
		}
	}
	body, _, err := fetch(t, web.URL) // the client asks for gzip and undoes it
	if err != nil || !strings.Contains(string(body), "idemscope_build_info") {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}
