package ledger

import (
	"strconv"
	"strings"
	"time"
)

// stampOf reads the text of a time column. TIMESTAMP columns arrive in UTC,
// because the session speaks UTC; integers count seconds or parts of seconds
// since 1970; everything else is local time in zone.
func stampOf(c *column, text string, zone *time.Location) Stamp {
	switch {
	case c.kind == "timestamp":
		s := parseLocal(text, time.UTC)
		s.Text = text + "+00:00"
		return s
	case c.integer():
		return parseEpoch(text)
	}
	return parseLocal(text, zone)
}

// parseEpoch reads seconds, milliseconds or microseconds since 1970, told apart
// by their size: seconds stay below 1e11 until the year 5138, and milliseconds
// have been above it since 1973. Zero and less mean "not set".
func parseEpoch(text string) Stamp {
	n, err := strconv.ParseInt(text, 10, 64)
	s := Stamp{State: StampOK, Text: text}
	switch {
	case err != nil || n <= 0:
		s.State = StampZero
	case n < 1e11:
		s.Time = time.Unix(n, 0).UTC()
	case n < 1e14:
		s.Time = time.UnixMilli(n).UTC()
	default:
		s.Time = time.UnixMicro(n).UTC()
	}
	return s
}

// parseLocal reads "2006-01-02 15:04:05.999999" or a date alone as local time.
// A time that the zone skips has no instant; one that happens twice is
// ambiguous and read as the later.
func parseLocal(text string, zone *time.Location) Stamp {
	wall, err := parseWall(text)
	if err != nil {
		return Stamp{State: StampZero, Text: text}
	}
	if zone == time.UTC {
		return Stamp{State: StampOK, Text: text, Time: wall}
	}
	instants := instantsOf(wall, zone)
	switch len(instants) {
	case 0:
		return Stamp{State: StampZero, Text: text}
	case 1:
		return Stamp{State: StampOK, Text: text, Time: instants[0]}
	}
	return Stamp{State: StampAmbiguous, Text: text, Time: instants[len(instants)-1]}
}

// parseWall returns the fields of text as if they were UTC.
func parseWall(text string) (time.Time, error) {
	if !strings.Contains(text, " ") {
		return time.Parse(time.DateOnly, text)
	}
	return time.Parse(time.DateTime, text)
}

// instantsOf returns, in order, every instant at which clocks in zone show wall.
func instantsOf(wall time.Time, zone *time.Location) []time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	start, end := near.ZoneBounds()
	candidates := []time.Time{near}
	if !start.IsZero() {
		candidates = append(candidates, start.Add(-time.Nanosecond))
	}
	if !end.IsZero() {
		candidates = append(candidates, end)
	}
	var instants []time.Time
	for _, c := range candidates {
		_, offset := c.Zone()
		instant := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if !sameWall(instant, wall) {
			continue
		}
		switch {
		case len(instants) == 0 || instant.After(instants[len(instants)-1]):
			instants = append(instants, instant)
		case instant.Before(instants[0]):
			instants = append([]time.Time{instant}, instants...)
		}
	}
	return instants
}

func sameWall(t, wall time.Time) bool {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).Equal(wall)
}
