package audit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"idemscope/internal/flow"
)

// maxLine bounds one entry in the file, in bytes.
const maxLine = 1 << 20

// ErrTooLong: the entry is longer than the file takes.
var ErrTooLong = fmt.Errorf("an audit entry takes at most %d bytes: shorten the reason", maxLine)

// line is an entry as it stands in the file. Of a text that is not UTF-8 the true
// bytes stand in Hex, under the name of its field.
type line struct {
	At      time.Time         `json:"at"`
	Attempt string            `json:"attempt"`
	Who     string            `json:"who"`
	From    string            `json:"from,omitempty"`
	Action  string            `json:"action"`
	Flow    string            `json:"flow,omitempty"`
	BizType string            `json:"biz_type"`
	BizID   string            `json:"biz_id"`
	Reason  string            `json:"reason"`
	Outcome Outcome           `json:"outcome"`
	Why     *why              `json:"why,omitempty"`
	Before  string            `json:"before,omitempty"`
	After   string            `json:"after,omitempty"`
	Hex     map[string]string `json:"hex,omitempty"`
}

type why struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// texts are the fields that may hold any bytes, by their names in the file.
func (l *line) texts() map[string]*string {
	return map[string]*string{
		"attempt": &l.Attempt, "who": &l.Who, "from": &l.From, "action": &l.Action, "flow": &l.Flow, "biz_type": &l.BizType, "biz_id": &l.BizID,
		"reason": &l.Reason, "before": &l.Before, "after": &l.After,
	}
}

// encode writes an entry as one line, with the line end.
func encode(e Entry) ([]byte, error) {
	l := line{
		At: e.At, Attempt: e.Attempt, Who: e.Who, From: e.From, Action: e.Action, Flow: e.Place.Flow,
		BizType: e.Place.Key.BizType, BizID: e.Place.Key.BizID, Reason: e.Reason, Outcome: e.Outcome, Before: e.Before, After: e.After,
	}
	if !e.Why.Empty() {
		l.Why = &why{e.Why.EN, e.Why.ZH}
	}
	for name, text := range l.texts() {
		if !utf8.ValidString(*text) {
			if l.Hex == nil {
				l.Hex = map[string]string{}
			}
			l.Hex[name] = hex.EncodeToString([]byte(*text))
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return nil, fmt.Errorf("encode an audit entry: %w", err)
	}
	if b.Len() > maxLine {
		return nil, ErrTooLong
	}
	return b.Bytes(), nil
}

var errNoEntry = errors.New("not an audit entry")

// decode reads one line, without its end.
func decode(text []byte) (Entry, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Entry{}, err
	}
	if l.At.IsZero() || l.Action == "" || l.Outcome == "" {
		return Entry{}, errNoEntry
	}
	fields := l.texts()
	for name, digits := range l.Hex {
		raw, err := hex.DecodeString(digits)
		if err != nil || fields[name] == nil {
			return Entry{}, errNoEntry
		}
		*fields[name] = string(raw)
	}
	e := Entry{
		At: l.At, Attempt: l.Attempt, Who: l.Who, From: l.From, Action: l.Action,
		Place:  flow.Place{Flow: l.Flow, Key: flow.Key{BizType: l.BizType, BizID: l.BizID}},
		Reason: l.Reason, Outcome: l.Outcome, Before: l.Before, After: l.After,
	}
	if l.Why != nil {
		e.Why = flow.Text{EN: l.Why.EN, ZH: l.Why.ZH}
	}
	return e, nil
}
