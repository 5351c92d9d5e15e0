package mask

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxNested bounds how often JSON may stand inside a text of JSON and is still
// looked through; deeper, the patterns alone count.
const maxNested = 4

// looksLikeJSON reports a text that begins like a group or a list.
func looksLikeJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n\ufeff")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// scan goes through JSON byte by byte. It keeps no numbers and builds no values,
// so that what is not hidden stays as it is written. It never gives up: what is no
// JSON, or is cut off, is still looked through, and there the last name of a path
// is enough.
type scan struct {
	*Mask
	in  string
	at  int
	out strings.Builder
	// stack holds what is open around the place.
	stack []open
	// lost: the text is no JSON from somewhere before the place on.
	lost bool
	// nested is inside how many texts the JSON stands.
	nested int
	root   []place
}

// open is a group or a list that has begun.
type open struct {
	list bool
	// places the rules have come to, for what stands in it.
	places []place
}

func (m *Mask) json(s string, from []place, nested int) string {
	sc := &scan{Mask: m, in: s, nested: nested, root: from}
	sc.out.Grow(len(s))
	for sc.at < len(sc.in) {
		sc.next()
	}
	return sc.out.String()
}

// next takes one token.
func (s *scan) next() {
	switch c := s.in[s.at]; {
	case c == '{' || c == '[':
		s.stack = append(s.stack, open{list: c == '[', places: s.places()})
		s.keep(1)
	case c == '}' || c == ']':
		if len(s.stack) == 0 || s.stack[len(s.stack)-1].list != (c == ']') {
			s.lost = true
		} else {
			s.stack = s.stack[:len(s.stack)-1]
		}
		s.keep(1)
	case c == '"':
		s.text()
	case strings.IndexByte(" \t\r\n,:", c) >= 0:
		s.keep(1)
	default:
		s.bare()
	}
}

// places are those that count for a value at the place: a list is looked through.
func (s *scan) places() []place {
	if len(s.stack) == 0 {
		return s.root
	}
	return s.stack[len(s.stack)-1].places
}

func (s *scan) keep(n int) {
	s.out.WriteString(s.in[s.at : s.at+n])
	s.at += n
}

// text takes a text: a name with its value, or a value.
func (s *scan) text() {
	end, whole := textEnd(s.in, s.at)
	token := s.in[s.at:end]
	colon, isName := colonAfter(s.in, end)
	if !whole || !isName {
		s.out.WriteString(s.shown(token, whole, s.places()))
		s.at = end
		return
	}
	name, _ := decode(token, whole)
	s.out.WriteString(s.shownName(token, name))
	s.out.WriteString(s.in[end:colon])
	s.at = colon
	inGroup := len(s.stack) > 0 && !s.stack[len(s.stack)-1].list
	if !inGroup {
		s.lost = true
	}
	places, hit := s.follow(s.places(), name)
	if hit || s.lost && s.named(name) {
		s.hideValue()
		return
	}
	s.valueOf(places)
}

// shownName hides what a pattern finds in a name: some use phone numbers as such.
func (s *scan) shownName(token, name string) string {
	if shown := s.plain(name); shown != name {
		return encode(shown)
	}
	return token
}

// valueOf takes the value of a name.
func (s *scan) valueOf(places []place) {
	s.blank()
	if s.at == len(s.in) {
		return
	}
	switch c := s.in[s.at]; c {
	case '{', '[':
		s.stack = append(s.stack, open{list: c == '[', places: places})
		s.keep(1)
	case '"':
		end, whole := textEnd(s.in, s.at)
		s.out.WriteString(s.shown(s.in[s.at:end], whole, places))
		s.at = end
	default:
		if strings.IndexByte("}],:", c) < 0 {
			s.bare()
		}
	}
}

func (s *scan) blank() {
	for s.at < len(s.in) && strings.IndexByte(" \t\r\n", s.in[s.at]) >= 0 {
		s.keep(1)
	}
}

// shown returns a text as it may be seen.
func (s *scan) shown(token string, whole bool, places []place) string {
	plain, raw := decode(token, whole)
	var shown string
	if looksLikeJSON(plain) && s.nested < maxNested {
		shown = s.json(plain, places, s.nested+1)
	} else {
		shown = s.plain(plain)
	}
	switch {
	case shown == plain:
		return token
	case raw:
		shown = `"` + shown + `"`
	default:
		shown = encode(shown)
	}
	if !whole {
		shown = strings.TrimSuffix(shown, `"`)
	}
	return shown
}

// bare takes a number, a word, or what is no JSON at all.
func (s *scan) bare() {
	end := bareEnd(s.in, s.at)
	token := s.in[s.at:end]
	if !isBare(token) {
		s.lost = true
	}
	if shown := s.plain(token); shown == token {
		s.out.WriteString(token)
	} else if isBare(token) {
		s.out.WriteString(encode(shown))
	} else {
		s.out.WriteString(shown)
	}
	s.at = end
}

// isBare reports a number or a word of JSON.
func isBare(token string) bool { return json.Valid([]byte(token)) }

func bareEnd(s string, from int) int {
	if end := strings.IndexAny(s[from:], "{}[]\",: \t\r\n"); end > 0 {
		return from + end
	}
	return len(s)
}

// hideValue takes a value whole and hides it.
func (s *scan) hideValue() {
	s.blank()
	from := s.at
	if from == len(s.in) {
		return
	}
	switch c := s.in[from]; {
	case c == '"':
		end, whole := textEnd(s.in, from)
		s.at = end
		if plain, _ := decode(s.in[from:end], whole); whole && plain != "" {
			s.out.WriteString(encode(value(plain)))
			return
		} else if plain == "" {
			s.out.WriteString(s.in[from:end])
			return
		}
	case c == '{' || c == '[':
		s.at = groupEnd(s.in, from)
	case strings.IndexByte("}],:", c) >= 0:
		return
	default:
		s.at = bareEnd(s.in, from)
		if token := s.in[from:s.at]; token == "null" {
			s.out.WriteString(token)
			return
		} else if isBare(token) {
			s.out.WriteString(encode(value(token)))
			return
		}
	}
	s.out.WriteString(encode(hidden))
}

// textEnd returns where the text that begins at from ends; whole is false when
// the input ends before it does.
func textEnd(s string, from int) (end int, whole bool) {
	for i := from + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return len(s), false
}

// groupEnd returns where the group or list that begins at from ends.
func groupEnd(s string, from int) int {
	depth := 0
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '"':
			end, _ := textEnd(s, i)
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// colonAfter returns the place behind the colon that makes a text a name.
func colonAfter(s string, from int) (at int, ok bool) {
	for i := from; i < len(s); i++ {
		if s[i] == ':' {
			return i + 1, true
		}
		if strings.IndexByte(" \t\r\n", s[i]) < 0 {
			break
		}
	}
	return from, false
}

// decode returns what a text of JSON says; raw: it is none, and these are its bytes
// as they are written.
func decode(token string, whole bool) (text string, raw bool) {
	body := token[1:]
	if whole {
		body = body[:len(body)-1]
	}
	if strings.IndexByte(body, '\\') < 0 {
		return body, !utf8.ValidString(body)
	}
	var s string
	if !utf8.ValidString(body) || json.Unmarshal([]byte(`"`+body+`"`), &s) != nil {
		return body, true
	}
	return s, false
}

// encode writes a text as JSON, with no more escapes than it needs.
func encode(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// A text can always be encoded.
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
