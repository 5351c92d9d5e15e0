package flow

import (
	"fmt"
	"time"
)

// Span words a duration for people in both languages with two units at most:
// "1.4 s", "2 min 5 s", "3 h", "9 d 4 h". A negative span is worded by its size.
func Span(d time.Duration) Text {
	if d < 0 {
		d = -d
	}
	switch {
	case 0 < d && d < time.Millisecond:
		return T("under 1 ms", "不到 1 毫秒")
	case d < time.Second:
		return T("%d ms", "%d 毫秒", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return T("%.1f s", "%.1f 秒", d.Seconds())
	case d < time.Minute:
		return T("%d s", "%d 秒", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(d, time.Minute, unit{"min", "分"}, time.Second, unit{"s", "秒"})
	case d < 24*time.Hour:
		return twoUnits(d, time.Hour, unit{"h", "小时"}, time.Minute, unit{"min", "分"})
	}
	return twoUnits(d, 24*time.Hour, unit{"d", "天"}, time.Hour, unit{"h", "小时"})
}

type unit struct{ en, zh string }

func twoUnits(d, large time.Duration, largeUnit unit, small time.Duration, smallUnit unit) Text {
	n, rest := d/large, (d%large)/small
	text := Text{EN: fmt.Sprintf("%d %s", n, largeUnit.en), ZH: fmt.Sprintf("%d %s", n, largeUnit.zh)}
	if rest > 0 {
		text.EN += fmt.Sprintf(" %d %s", rest, smallUnit.en)
		text.ZH += fmt.Sprintf(" %d %s", rest, smallUnit.zh)
	}
	return text
}
