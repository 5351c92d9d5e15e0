package ledger

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the cases, also where the system has none
)

// FuzzStamp: an instant that is claimed shows, in its zone, the very time that
// stands in the column; where none is claimed there is none.
func FuzzStamp(f *testing.F) {
	zones := []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Pyongyang"}
	for i, text := range []string{
		"2025-01-15 10:00:00", "2025-10-26 02:30:00.999999", "2025-03-30 02:30:00", "0000-00-00 00:00:00", "2025-02-30", "2011-12-30 12:00:00",
		"9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "1736900000", "1736900000000", "-1", "99999999999999999999", "", "2025-01-15", "2025-04-06 01:45:00",
	} {
		f.Add(text, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, pick uint8) {
		zone, err := time.LoadLocation(zones[int(pick)%len(zones)])
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"datetime", "timestamp", "date", "bigint"} {
			s := stampOf(&column{kind: kind}, text, zone)
			instant := s.State == StampOK || s.State == StampAmbiguous
			if !instant && s.State != StampZero || s.State == StampZero && !s.Time.IsZero() {
				t.Fatalf("%s %q is %+v", kind, text, s)
			}
			if !instant {
				continue
			}
			switch kind {
			case "bigint":
				if s.Time.Unix() < 0 || s.State == StampAmbiguous {
					t.Errorf("%q counts to %+v", text, s)
				}
			case "timestamp":
				checkWall(t, s, text, time.UTC)
			default:
				checkWall(t, s, text, zone)
			}
		}
	})
}

// checkWall compares what a clock in zone shows at the instant with the column.
func checkWall(t *testing.T, s Stamp, text string, zone *time.Location) {
	t.Helper()
	wall, err := parseWall(text)
	if err != nil {
		t.Fatalf("an instant of %q, which is no time: %v", text, err)
	}
	if !sameWall(s.Time.In(zone), wall) {
		t.Errorf("%q in %s is said to be %s", text, zone, s.Time.In(zone))
	}
	// Clocks have been put back by 20 minutes to 3 hours.
	for gap := 10 * time.Minute; gap <= 3*time.Hour; gap += 10 * time.Minute {
		if sameWall(s.Time.Add(gap).In(zone), wall) {
			t.Errorf("%q in %s is read as %s although it comes again %s later", text, zone, s.Time, gap)
		}
		if s.State == StampOK && sameWall(s.Time.Add(-gap).In(zone), wall) {
			t.Errorf("%q in %s is read as %s alone although it had come %s before", text, zone, s.Time, gap)
		}
	}
}
