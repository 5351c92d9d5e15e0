// Package figure is how every benchmark prints what it measured: one line per
// figure, with its goal, and whether the value misses it.
//
// It measures nothing itself.
package figure

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Figure is one measured value and its goal.
type Figure struct {
	Name  string
	Value float64
	// Unit may be empty, as that of a ratio is.
	Unit string
	Goal Goal
	// Setting says at which sizes and how it was measured.
	Setting string
}

// Goal is the bound that a value must keep. It is made by AtMost or AtLeast.
type Goal struct {
	least bool
	bound float64
}

// AtMost is the goal of a value that must not be larger.
func AtMost(bound float64) Goal { return Goal{bound: bound} }

// AtLeast is the goal of a value that must not be smaller.
func AtLeast(bound float64) Goal { return Goal{least: true, bound: bound} }

// Met reports whether the value keeps its goal.
func (f Figure) Met() bool {
	if f.Goal.least {
		return f.Value >= f.Goal.bound
	}
	return f.Value <= f.Goal.bound
}

// String is the line of the figure; a missed goal is named at its end.
func (f Figure) String() string {
	sign, verdict, unit := "<=", "", ""
	if f.Goal.least {
		sign = ">="
	}
	if !f.Met() {
		verdict = " MISSED"
	}
	if f.Unit != "" {
		unit = " " + f.Unit
	}
	return fmt.Sprintf("figure %s = %s%s (goal %s %s; %s)%s", f.Name, short(f.Value), unit, sign, short(f.Goal.bound), f.Setting, verdict)
}

// Print writes one line per figure and reports whether any misses its goal.
func Print(w io.Writer, figures ...Figure) (missed bool) {
	for _, f := range figures {
		fmt.Fprintln(w, f)
		missed = missed || !f.Met()
	}
	return missed
}

// short writes a number with three digits after the point at most.
func short(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(float64(int64(v*1000+0.5))/1000, 'f', -1, 64)
}

// Quantile is the value below which that part (0 to 1) of all values lies; 0
// without any.
func Quantile[T time.Duration | float64](values []T, part float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// Median is the value in the middle.
func Median[T time.Duration | float64](values []T) T { return Quantile(values, 0.5) }
