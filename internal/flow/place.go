package flow

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// ErrPlace is the error of a text that Encode did not write.
var ErrPlace = errors.New("not a place that this program wrote")

// Encode writes the place as one word of letters, digits, - and _, for addresses and
// forms: whatever bytes its key has, they survive.
func (p Place) Encode() string {
	var raw []byte
	for _, part := range []string{p.Flow, p.Key.BizType} {
		raw = append(binary.AppendUvarint(raw, uint64(len(part))), part...)
	}
	return base64.RawURLEncoding.EncodeToString(append(raw, p.Key.BizID...))
}

// DecodePlace reads what Encode wrote. Error: ErrPlace.
func DecodePlace(word string) (Place, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(word)
	if err != nil {
		return Place{}, ErrPlace
	}
	var p Place
	for _, part := range []*string{&p.Flow, &p.Key.BizType} {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > uint64(len(raw)-size) {
			return Place{}, ErrPlace
		}
		*part, raw = string(raw[size:size+int(n)]), raw[size+int(n):]
	}
	p.Key.BizID = string(raw)
	// Another spelling of the same place would be another word for it.
	if p.Encode() != word {
		return Place{}, ErrPlace
	}
	return p, nil
}
