package janitor

import (
	"testing"
	"time"
)

// TestAfterARunThePlanIsThatOfNow: the page would promise rows that are gone.
func TestAfterARunThePlanIsThatOfNow(t *testing.T) {
	_, p := ready(t, false, 300)
	task := p.task(t)
	task.Enabled, task.Window = true, Window{From: 0, To: 24*60 - 1, Zone: time.UTC}
	j := hire(t, task)
	if plan, err := j.Plan(soon(t), task.Name, false); err != nil || plan.Candidates() != 300 {
		t.Fatalf("before: %d rows would go, %v", plan.Candidates(), err)
	}
	j.scheduled(soon(t), &j.tasks[0], &diary{})
	if s := j.Status()[0]; s.Plan.Candidates() != 0 {
		t.Errorf("after the run (%s %s): %d rows would go", s.State, s.Why.EN, s.Plan.Candidates())
	}
}
