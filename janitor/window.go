package janitor

import "time"

// Window is a part of every day on the clocks of one zone. Its zero value never opens.
type Window struct {
	// From and To are minutes after midnight, 0 to 1439. It goes over midnight
	// when To is not above From.
	From, To int
	// Zone is mandatory.
	Zone *time.Location
}

// dayAndMore bounds the search for a time of the day: even one that a change of
// the clocks skips comes up within two days.
const dayAndMore = 49 * time.Hour

// None reports whether there is no window at all.
func (w Window) None() bool { return w.From == w.To }

// Open reports whether t lies in the window. Clocks that are put back repeat a
// part of it; clocks that are put forward shorten it.
func (w Window) Open(t time.Time) bool {
	if w.None() {
		return false
	}
	local := t.In(w.Zone)
	minute := local.Hour()*60 + local.Minute()
	if w.From < w.To {
		return minute >= w.From && minute < w.To
	}
	return minute >= w.From || minute < w.To
}

// Opens returns the next time at or after t at which the window is open; zero
// when there is none.
func (w Window) Opens(t time.Time) time.Time { return w.next(t, true) }

// Closes returns the first time at or after t at which the window is closed.
func (w Window) Closes(t time.Time) time.Time { return w.next(t, false) }

func (w Window) next(t time.Time, open bool) time.Time {
	if w.Open(t) == open {
		return t
	}
	for at := t.Truncate(time.Minute).Add(time.Minute); at.Before(t.Add(dayAndMore)); at = at.Add(time.Minute) {
		if w.Open(at) == open {
			return at
		}
	}
	return time.Time{}
}

// present returns when the window opened in which t lies, or else the next one
// opens, and when that closes.
func (w Window) present(t time.Time) (opens, closes time.Time) {
	opens = w.Opens(t)
	if opens.Equal(t) && w.Open(t) {
		for at := t.Truncate(time.Minute); w.Open(at) && at.After(t.Add(-dayAndMore)); at = at.Add(-time.Minute) {
			opens = at
		}
	}
	return opens, w.Closes(w.Opens(t))
}

// Night names the opening in which t lies by the date on which it began, so that
// the two halves around midnight are one.
func (w Window) Night(t time.Time) string {
	local := t.In(w.Zone)
	if w.From > w.To && local.Hour()*60+local.Minute() < w.To {
		local = local.AddDate(0, 0, -1)
	}
	return local.Format(time.DateOnly)
}
