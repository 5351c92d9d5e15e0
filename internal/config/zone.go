package config

import (
	"regexp"
	"strconv"
	"time"
	// The zones come along, so that a container without zone files knows them too.
	_ "time/tzdata"
)

var offsetShape = regexp.MustCompile(`^([+-])(\d\d):(\d\d)$`)

// zone reads a time zone, an IANA name or an offset; UTC when it is left out.
func (s *section) zone(key string) *time.Location {
	text := s.text(key)
	if text == "" {
		return time.UTC
	}
	if zone, ok := parseZone(text); ok {
		return zone
	}
	v := s.value(key)
	s.problemf(v.at, v.path, "%q is not a time zone; write a name such as Asia/Shanghai or UTC, or an offset such as +08:00", text)
	return time.UTC
}

// parseZone reads an IANA name or ±hh:mm, up to 14 hours. "Local" is refused:
// it would mean another zone on each machine.
func parseZone(text string) (*time.Location, bool) {
	if match := offsetShape.FindStringSubmatch(text); match != nil {
		hours, _ := strconv.Atoi(match[2])
		minutes, _ := strconv.Atoi(match[3])
		seconds := (hours*60 + minutes) * 60
		if minutes > 59 || seconds > 14*3600 {
			return nil, false
		}
		if match[1] == "-" {
			seconds = -seconds
		}
		return time.FixedZone(text, seconds), true
	}
	zone, err := time.LoadLocation(text)
	return zone, err == nil && zone != time.Local
}
