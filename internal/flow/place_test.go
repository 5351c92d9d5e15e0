package flow

import (
	"errors"
	"strings"
	"testing"
)

func TestPlaceSurvivesItsWord(t *testing.T) {
	for _, id := range []string{"", "4711", "\x00\xff\r\n", "<script>", strings.Repeat("😀", 2500)} {
		for _, bizType := range []string{"", "order:refund", "\xff"} {
			p := Place{Flow: "payments", Key: Key{BizType: bizType, BizID: id}}
			got, err := DecodePlace(p.Encode())
			if err != nil || got != p {
				t.Errorf("%+v: %+v, %v", p, got, err)
			}
			if strings.IndexFunc(p.Encode(), func(r rune) bool {
				return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r)
			}) >= 0 {
				t.Errorf("%q", p.Encode())
			}
		}
	}
	for _, word := range []string{"", "x", "====", "_", "gICAgICAgICAgAE", "CHBheW1lbnRz", "AAA=", "AB", "gAAA"} {
		if p, err := DecodePlace(word); !errors.Is(err, ErrPlace) {
			t.Errorf("%q: %+v, %v", word, p, err)
		}
	}
}

func FuzzDecodePlace(f *testing.F) {
	f.Add(Place{Flow: "a", Key: Key{BizType: "b", BizID: "c"}}.Encode())
	f.Fuzz(func(t *testing.T, word string) {
		if p, err := DecodePlace(word); err == nil && p.Encode() != word {
			t.Errorf("%q: %+v is written %q", word, p, p.Encode())
		}
	})
}
