package app

import (
	"fmt"
	"io"
	"strings"
	"time"

	"idemscope/internal/flow"
	"idemscope/janitor"
)

const (
	// drawEvery is how often a terminal shows the progress, logEvery how often it is logged elsewhere.
	drawEvery = 250 * time.Millisecond
	logEvery  = 30 * time.Second
	// barWidth is how many characters the bar has.
	barWidth = 24
	// clearLine goes back to the beginning of the line and empties it.
	clearLine = "\r\x1b[K"
)

// follow shows how far the run of a task is, until stop is called.
func (o JanitorOptions) follow(j *janitor.Janitor, task string) (stop func()) {
	every := logEvery
	if o.drawn() {
		every = drawEvery
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				o.show(j, task)
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		if o.drawn() {
			_, _ = io.WriteString(o.Out, clearLine)
		}
	}
}

// drawn: the progress stands on a terminal, and in the way of nothing else.
func (o JanitorOptions) drawn() bool { return o.Terminal && !o.JSON }

func (o JanitorOptions) show(j *janitor.Janitor, task string) {
	for _, s := range j.Status() {
		switch {
		case s.Task != task || s.Run == nil:
		case o.drawn():
			_, _ = io.WriteString(o.Out, clearLine+progressLine(*s.Run, o.Language))
		default:
			o.Logger.Info("cleanup goes on", "task", task, "table", s.Run.Table, "rows", s.Run.Rows, "share_done", fmt.Sprintf("%.2f", s.Run.Share),
				"rows_per_second", int64(s.Run.PerSecond), "left", s.Run.Left, "held_up_by", s.Run.Hold)
		}
	}
}

// progressLine is one line of a terminal: a bar, the share done, rows, pace, and
// the time left or why it waits.
func progressLine(p janitor.Progress, lang flow.Language) string {
	full := int(p.Share * barWidth)
	bar := strings.Repeat("#", full) + strings.Repeat("-", barWidth-full)
	parts := []flow.Text{
		flow.T("%d rows", "%d 行", p.Rows),
		flow.T("%.0f rows/s", "%.0f 行/秒", p.PerSecond),
	}
	if p.Tables > 1 {
		parts = append(parts, flow.T("table %d of %d", "第 %d 张表，共 %d 张", p.Number, p.Tables))
	}
	switch {
	case p.Hold != "":
		parts = append(parts, flow.T("waits: %s", "等待：%s", p.HoldText))
	case p.Left > 0:
		parts = append(parts, flow.T("about %s left", "约剩 %s", flow.Span(p.Left)))
	}
	line := fmt.Sprintf("[%s] %3.0f %%", bar, p.Share*100)
	for _, part := range parts {
		line += "  " + part.In(lang)
	}
	return line
}
