package archive

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Row is a row in the order of its columns; nil is NULL. A value is what the
// server writes for it, as bytes.
type Row = [][]byte

// appendRow writes the row as one line of JSON. Text that is no UTF-8 is written
// as {"hex": ...}, so that every byte comes back.
func appendRow(line []byte, columns []string, row Row) ([]byte, error) {
	if len(row) != len(columns) {
		return nil, fmt.Errorf("a row has %d values for %d columns", len(row), len(columns))
	}
	line = append(line, '{')
	for i, name := range columns {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendText(line, name)
		line = append(line, ':')
		switch value := row[i]; {
		case value == nil:
			line = append(line, "null"...)
		case utf8.Valid(value):
			line = appendText(line, string(value))
		default:
			line = append(line, `{"hex":"`...)
			line = hex.AppendEncode(line, value)
			line = append(line, `"}`...)
		}
	}
	return append(line, '}', '\n'), nil
}

func appendText(line []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can always be encoded
	return append(line, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// parseRow reads a line back, in the order of the columns.
func parseRow(line []byte, columns []string) (Row, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(line, &values); err != nil {
		return nil, err
	}
	if len(values) != len(columns) {
		return nil, fmt.Errorf("a row has %d values for %d columns", len(values), len(columns))
	}
	row := make(Row, len(columns))
	for i, name := range columns {
		raw, ok := values[name]
		if !ok {
			return nil, fmt.Errorf("a row has no value for the column %q", name)
		}
		value, err := parseValue(raw)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		row[i] = value
	}
	return row, nil
}

func parseValue(raw json.RawMessage) ([]byte, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		var binary struct {
			Hex *string `json:"hex"`
		}
		if err := json.Unmarshal(raw, &binary); err != nil || binary.Hex == nil {
			return nil, fmt.Errorf("%s is no value", raw)
		}
		value, err := hex.DecodeString(*binary.Hex)
		return append([]byte{}, value...), err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	return []byte(text), nil
}
