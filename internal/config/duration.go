package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var spelledDuration = regexp.MustCompile(`^\s*(\d{1,9})\s*(\p{L}*)\s*$`)

// parseDuration reads a time span such as 1h30m. Its errors propose what was
// probably meant.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	match := spelledDuration.FindStringSubmatch(text)
	if match == nil {
		return 0, errors.New("is not a time span; write a number and a unit: 500ms, 30s, 5m, 24h")
	}
	unit := strings.ToLower(match[2])
	if unit == "" {
		return 0, fmt.Errorf("a time span needs a unit; write %ss if seconds are meant", match[1])
	}
	for _, known := range spelledUnits {
		if slices.Contains(known.words, unit) {
			n, _ := strconv.Atoi(match[1])
			return 0, fmt.Errorf("%q is not a time span; write %d%s", text, n*known.times, known.unit)
		}
	}
	return 0, fmt.Errorf("%q is not a time span; the units are ms, s, m and h: 500ms, 30s, 5m, 24h", text)
}

// spelledUnits says how people spell a unit and how it is written here.
var spelledUnits = []struct {
	unit  string
	times int
	words []string
}{
	{"ms", 1, []string{"ms", "msec", "msecs", "millis", "millisecond", "milliseconds", "毫秒"}},
	{"s", 1, []string{"s", "sec", "secs", "second", "seconds", "秒", "秒钟"}},
	{"m", 1, []string{"m", "min", "mins", "minute", "minutes", "分", "分钟"}},
	{"h", 1, []string{"h", "hr", "hrs", "hour", "hours", "时", "小时"}},
	{"h", 24, []string{"d", "day", "days", "天", "日"}},
	{"h", 7 * 24, []string{"w", "week", "weeks", "周"}},
}

// shortDuration writes 5m rather than 5m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
