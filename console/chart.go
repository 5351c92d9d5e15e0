package console

import (
	"fmt"
	"math"
	"strings"
	"time"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

const (
	// chartWidth and chartHeight are the units in which a chart is drawn; the page
	// stretches it to the room that it has.
	chartWidth, chartHeight = 300, 60
	// chartMargin keeps the line's own width inside.
	chartMargin = 3
)

// chart is one line over time, drawn by the server.
type chart struct {
	Says flowWords
	// Title names it and Desc says in words what it shows.
	Title, Desc flow.Text
	Width       int
	Height      int
	// Line and Area are path data; a point between two gaps is a dot of the line.
	Line, Area string
	// Gaps are where nothing is known.
	Gaps []gap
	// Max and Last word the highest and the newest value; empty when nothing is known.
	Max, Last flow.Text
	// From words how long ago the chart begins.
	From flow.Text
}

// gap is a part of a chart of which nothing is known.
type gap struct{ X, Width string }

// newChart draws a line. word puts a value into words.
func newChart(title flow.Text, l answer.Line, step time.Duration, word func(float64) flow.Text) chart {
	c := chart{Says: newFlowWords(), Title: title, Width: chartWidth, Height: chartHeight, From: flow.Span(time.Duration(len(l.Points)) * step)}
	highest, last, known := math.Inf(-1), math.NaN(), 0
	for _, p := range l.Points {
		if !math.IsNaN(p) {
			highest, last, known = max(highest, p), p, known+1
		}
	}
	if known == 0 {
		c.Gaps = []gap{{"0", fmt.Sprint(chartWidth)}}
		c.Desc = flow.T("Nothing is known of the last %v.", "最近 %v 没有数据。", c.From)
		return c
	}
	c.Max, c.Last = word(highest), word(last)
	c.Desc = flow.T("The last %[1]v. Highest %[2]v, latest %[3]v. Known for %[4]d of %[5]d points.", "最近 %[1]v。最高 %[2]v，最新 %[3]v。%[5]d 个点中 %[4]d 个有数据。",
		c.From, c.Max, c.Last, known, len(l.Points))
	c.draw(l.Points, highest)
	return c
}

// draw makes the paths, from 0 at the bottom to the highest value at the top.
func (c *chart) draw(points []float64, highest float64) {
	width := float64(chartWidth) / float64(len(points))
	x := func(i int) float64 { return (float64(i) + 0.5) * width }
	y := func(v float64) float64 {
		if highest <= 0 {
			return chartHeight - chartMargin
		}
		return chartHeight - chartMargin - v/highest*(chartHeight-2*chartMargin)
	}
	var line, area strings.Builder
	for i := 0; i < len(points); {
		end := i
		for end < len(points) && math.IsNaN(points[end]) == math.IsNaN(points[i]) {
			end++
		}
		if math.IsNaN(points[i]) {
			c.Gaps = append(c.Gaps, gap{coordinate(float64(i) * width), coordinate(float64(end-i) * width)})
			i = end
			continue
		}
		fmt.Fprintf(&area, "M%s %d", coordinate(x(i)), chartHeight)
		for at := i; at < end; at++ {
			command := "L"
			if at == i {
				command = "M"
			}
			fmt.Fprintf(&line, "%s%s %s", command, coordinate(x(at)), coordinate(y(points[at])))
			fmt.Fprintf(&area, "L%s %s", coordinate(x(at)), coordinate(y(points[at])))
		}
		if end == i+1 {
			line.WriteString("h0.01") // a lone point shows as a dot
		}
		fmt.Fprintf(&area, "L%s %dZ", coordinate(x(end-1)), chartHeight)
		i = end
	}
	c.Line, c.Area = line.String(), area.String()
}

// coordinate writes a length without needless digits.
func coordinate(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

// countText words a count, with its digits in groups.
func countText(v float64) flow.Text {
	digits := fmt.Sprintf("%.0f", v)
	grouped := ""
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			grouped += ","
		}
		grouped += string(d)
	}
	return flow.T("%s", "%s", grouped)
}

// shortCount words a count for the edge of a chart: three digits where it is large.
func shortCount(v float64) flow.Text {
	if v < 1e6 {
		return countText(v)
	}
	return flow.T("%[1]s M", "%[2]s 万", coordinate(v/1e6), fmt.Sprintf("%.0f", v/1e4))
}

// secondsText words a duration in seconds.
func secondsText(v float64) flow.Text {
	return flow.Span(time.Duration(v * float64(time.Second)).Round(100 * time.Microsecond))
}

// bar is one of two lengths that are compared.
type bar struct {
	// Width is 0 to 100.
	Width string
	Label flow.Text
	Value flow.Text
}

// bars scales two lengths to the longer one.
func bars(first, second float64) (a, b string) {
	longest := max(first, second)
	if longest <= 0 {
		return "0", "0"
	}
	return coordinate(100 * first / longest), coordinate(100 * second / longest)
}
