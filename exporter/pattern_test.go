package exporter

import "testing"

func TestPatternOfIDs(t *testing.T) {
	var p pattern
	id := uint64(5)
	rise := func(rows int, by uint64) {
		for range rows {
			id += by
			p.add(id)
		}
	}
	rise(1, 1)
	rise(patternRows-1, 3)
	if got := p.step(); got != 1 {
		t.Errorf("after too few rows the step is %d", got)
	}
	rise(1, 6) // a burned id keeps it
	if got := p.step(); got != 3 {
		t.Errorf("the step is %d, want 3", got)
	}
	rise(10, 9)
	if got := p.step(); got != 3 {
		t.Errorf("the step is %d, want 3", got)
	}
	rise(1, 1) // a second writer, or the setting has changed
	if got := p.step(); got != 1 {
		t.Errorf("the step is %d, want 1", got)
	}
	rise(2*patternRows, 2)
	if got := p.step(); got != 2 {
		t.Errorf("the step is %d, want 2", got)
	}
	p.add(3) // ids begin anew
	if got := p.step(); got != 1 {
		t.Errorf("the step is %d, want 1", got)
	}
}
