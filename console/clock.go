package console

import (
	"time"

	"idemscope/internal/flow"
)

// momentTolerance is how far a stamp may lie ahead without being worded as
// future: clocks differ a little, and columns round to whole seconds.
const momentTolerance = 2 * time.Second

// clock words times in the zone of the display.
type clock struct {
	zone *time.Location
}

// moment is one time for people and for machines.
type moment struct {
	// Clock is the time in the display zone with its offset; Machine is RFC 3339;
	// Hour is the time of the day alone.
	Clock, Machine, Hour string
}

func (c clock) moment(t time.Time) moment {
	t = t.In(c.zone)
	layout := "2006-01-02 15:04:05 -07:00"
	if t.Nanosecond()/int(time.Millisecond) != 0 {
		layout = "2006-01-02 15:04:05.000 -07:00"
	}
	return moment{Clock: t.Format(layout), Machine: t.Format(time.RFC3339Nano), Hour: t.Format("15:04:05")}
}

// ago words how long before now t was. A time that is still to come is worded
// as such, never as a negative age.
func ago(t, now time.Time) flow.Text {
	d := now.Sub(t)
	switch {
	case d < -momentTolerance:
		return flow.T("%v in the future", "%v 之后（未来）", flow.Span(d))
	case d < time.Second:
		return flow.T("just now", "刚刚")
	}
	return flow.T("%v ago", "%v前", flow.Span(d))
}

// zoneLabel names the zone with its offset at t.
func zoneLabel(zone *time.Location, t time.Time) string {
	name, offset := zone.String(), t.In(zone).Format("-07:00")
	if name == offset || name == "UTC" {
		return name
	}
	return name + " (" + offset + ")"
}
