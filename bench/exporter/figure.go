package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// figure is one measured value and its goal.
type figure struct {
	name  string
	value float64
	unit  string
	goal  goal
	// setting says at which sizes and how it was measured.
	setting string
}

// goal is the bound that a value must keep.
type goal struct {
	least bool // at least the bound; else at most
	bound float64
}

func atMost(bound float64) goal  { return goal{bound: bound} }
func atLeast(bound float64) goal { return goal{least: true, bound: bound} }

func (f figure) met() bool {
	if f.goal.least {
		return f.value >= f.goal.bound
	}
	return f.value <= f.goal.bound
}

func (f figure) String() string {
	sign, verdict := "<=", ""
	if f.goal.least {
		sign = ">="
	}
	if !f.met() {
		verdict = " MISSED"
	}
	return fmt.Sprintf("figure %s = %s %s (goal %s %s; %s)%s", f.name, short(f.value), f.unit, sign, short(f.goal.bound), f.setting, verdict)
}

// short writes a number with three digits after the point at most.
func short(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(float64(int64(v*1000+0.5))/1000, 'f', -1, 64)
}

// quantile is the value below which that part of all values lies.
func quantile[T time.Duration | float64](values []T, part float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
