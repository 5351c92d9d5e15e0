package exporter

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// otherType is the label of every biz_type beyond the cap.
const otherType = "other"

// labels gives each biz_type its label value. The cap is sticky: a type that
// has a name keeps it for good, whatever comes later, so that no series changes
// its meaning. Stores do not share an order, so first seen wins.
type labels struct {
	mu       sync.Mutex
	max      int
	named    map[string]string // stored bytes -> label
	overflow prometheus.Counter
}

// newLabels names the configured types first; they are never cut.
func newLabels(max int, configured []string, overflow prometheus.Counter) *labels {
	l := &labels{max: max, named: map[string]string{}, overflow: overflow}
	for _, bizType := range configured {
		l.named[bizType] = validLabel(bizType)
	}
	return l
}

// of returns the label of a biz_type. Different bytes may get the same label:
// callers add up by label.
func (l *labels) of(bizType string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if label, ok := l.named[bizType]; ok {
		return label
	}
	if len(l.named) >= l.max {
		l.overflow.Inc()
		return otherType
	}
	label := validLabel(bizType)
	l.named[strings.Clone(bizType)] = label
	return label
}

// validLabel spells bytes that are not UTF-8 as \xNN: one bad value would
// otherwise make the whole exposition invalid.
func validLabel(s string) string {
	if utf8.ValidString(s) {
		return strings.Clone(s)
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteString(`\x`)
			b.WriteByte(hex[s[i]>>4])
			b.WriteByte(hex[s[i]&15])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
