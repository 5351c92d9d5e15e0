package rabbitmq

import "testing"

func TestAVersionIsReadWithWhateverStandsBehindIt(t *testing.T) {
	for text, want := range map[string]Version{
		"3.10.8": {3, 10, 8}, "4.3.0-rc.1": {4, 3, 0}, "3.13.7+2": {3, 13, 7}, "4.0.5.1": {4, 0, 5},
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "4", "4.1", "four.1.0", "4.-1.0", "%%VSN%%"} {
		if got, err := ParseVersion(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
	if got := (Version{3, 10, 8}).String(); got != "3.10.8" {
		t.Errorf("written as %s", got)
	}
}

func TestVersionsAreOrderedByNumberNotByText(t *testing.T) {
	old, young := Version{3, 9, 20}, Version{3, 10, 8}
	if old.Compare(young) >= 0 || young.Compare(old) <= 0 || old.Compare(old) != 0 {
		t.Error("3.9.20 is not older than 3.10.8")
	}
}

func TestAbilitiesChangeWithTheVersionThatBroughtThem(t *testing.T) {
	before40 := Abilities{Streams: true, DeliveryCount: EveryReturn, ClientDeaths: true, GetCounts: true}
	reaching := before40
	reaching.DeadLettersReachStreams = true
	limited := reaching
	limited.DeliveryLimit, limited.ClientDeaths = 20, false
	properties := limited
	properties.PropertyFilters = true
	sql := properties
	sql.SQLFilters = true
	failures := sql
	failures.DeliveryCount, failures.GetCounts = FailuresOnly, false
	for _, c := range []struct {
		version string
		want    Abilities
	}{
		{"3.7.28", Abilities{}},
		{"3.8.34", Abilities{DeliveryCount: EveryReturn, ClientDeaths: true, GetCounts: true}},
		{"3.9.0", before40},
		{"3.10.8", before40},
		{"3.11.28", before40},
		{"3.12.0", reaching},
		{"3.13.7", reaching},
		{"4.0.5", limited},
		{"4.1.0", properties},
		{"4.2.0", sql},
		{"4.3.6", failures},
		{"5.0.0", failures},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Abilities(); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.version, got, c.want)
		}
	}
}
