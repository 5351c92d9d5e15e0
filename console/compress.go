package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

const (
	// smallest is from how many bytes on an answer is compressed.
	smallest = 1024
	// jitter is up to how many bytes are added to a compressed answer, so that its
	// length tells nothing of what in it repeats the question.
	jitter = 32
)

// compressed answers with gzip where the client takes it. What is compressed
// already, such as a static file, passes as it is.
func compressed(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(smallest), gzhttp.RandomJitter(jitter, 0, false))
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return wrap(h), nil
}

// deflate compresses a static file once, as well as it goes; nil where that does
// not make it smaller.
func deflate(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if b.Len() >= len(body) {
		return nil, nil
	}
	return b.Bytes(), nil
}

// takesGzip reports that the client names gzip, and does not refuse it.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.ReplaceAll(quality, " ", "")
			return q == "" || strings.Trim(strings.TrimPrefix(q, "q="), "0.") != ""
		}
	}
	return false
}
