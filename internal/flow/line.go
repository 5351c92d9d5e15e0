package flow

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Line is what stands inside a longer text, such as a line of a log.
type Line struct {
	// Places are the keys that pieces of the text name in a known shape: a Redis key,
	// biz_type:biz_id of a type that a flow names, a JSON message.
	Places []Place
	// IDs are pieces that could be biz_ids, and nothing more than that: listed only
	// where no piece names a key.
	IDs []string
}

const (
	// maxLine is how many bytes of a text are looked through; maxPieces how many pieces.
	maxLine   = 64 << 10
	maxPieces = 1000
	// maxObjects is how many beginnings of a JSON object are tried, and maxDepth how
	// deep texts inside of texts are read.
	maxObjects = 50
	maxDepth   = 3
	// maxLinePlaces and maxLineIDs bound the answer.
	maxLinePlaces = 50
	maxLineIDs    = 5
	// minFixed is how many characters of a Redis key's shape must stand outside its
	// placeholders for a piece of a text to be taken for one.
	minFixed = 3
)

// InLine looks for keys inside a text. It finds known shapes only, and takes nothing
// for a key because it looks like one: long ids are a last offer, apart.
func (c *Catalog) InLine(text string) Line {
	text = text[:min(len(text), maxLine)]
	var line Line
	c.readLine(text, maxDepth, &line)
	if len(line.Places) > 0 {
		return line
	}
	for _, piece := range pieces(text) {
		if len(line.IDs) < maxLineIDs && piece != text && looksLikeID(piece) && !slices.Contains(line.IDs, piece) {
			line.IDs = append(line.IDs, piece)
		}
	}
	return line
}

func (l *Line) add(places []Place) {
	for _, p := range places {
		if len(l.Places) < maxLinePlaces && !slices.Contains(l.Places, p) {
			l.Places = append(l.Places, p)
		}
	}
}

func (c *Catalog) readLine(text string, depth int, line *Line) {
	rest, tries := text, 0
	for depth > 0 && tries < maxObjects {
		at := strings.IndexByte(rest, '{')
		if at < 0 {
			break
		}
		tries++
		rest = rest[at:]
		d := json.NewDecoder(strings.NewReader(rest))
		d.UseNumber()
		var message map[string]any
		if d.Decode(&message) != nil {
			rest = rest[1:]
			continue
		}
		c.readValue(message, depth-1, line)
		rest = rest[d.InputOffset():]
	}
	for _, piece := range pieces(text) {
		line.add(c.byFixedShape(piece))
		line.add(c.byNamedType(piece))
	}
}

// readValue reads a JSON value as a message, and what is inside of it.
func (c *Catalog) readValue(value any, depth int, line *Line) {
	switch v := value.(type) {
	case map[string]any:
		line.add(c.byMessage(v))
		for _, name := range slices.Sorted(keysOf(v)) {
			c.readValue(v[name], depth, line)
		}
	case []any:
		for _, inner := range v {
			c.readValue(inner, depth, line)
		}
	case string:
		c.readLine(v, depth, line)
	}
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// around are marks that stand round a piece of a log line and are rarely part of it.
const around = `"'()[]{}<>,;=|` + "`" + "“”‘’。，；：（）【】"

// pieces cuts a text at blanks, and then at marks as well; the longer ones first.
func pieces(text string) (all []string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return blank(r) })
	add := func(piece string) {
		if piece != "" && len(all) < maxPieces {
			all = append(all, piece)
		}
	}
	for _, word := range words {
		add(word)
		if bare := strings.Trim(word, around+".:!?"); bare != word {
			add(bare)
		}
	}
	for _, word := range words {
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(around, r) }) {
			if part != word {
				add(strings.Trim(part, ".:!?"))
			}
		}
	}
	return all
}

// byFixedShape reads a Redis key. A shape that is hardly more than its placeholders
// would match anything.
func (c *Catalog) byFixedShape(piece string) (places []Place) {
	for _, f := range c.flows {
		for _, shape := range f.shapes() {
			fixed := shape.Prefix + strings.Join(shape.Template.literals, "")
			open := f.Rest && shape.Prefix+shape.Template.literals[0] == ""
			if len(fixed) < minFixed || open {
				continue
			}
			for _, k := range c.readKey(f, shape, piece) {
				places = append(places, Place{Flow: f.Name, Key: k})
			}
		}
	}
	return places
}

// byNamedType reads biz_type:biz_id of a type that a flow names.
func (c *Catalog) byNamedType(piece string) (places []Place) {
	for _, f := range c.flows {
		for _, t := range f.BizTypes {
			if id, ok := strings.CutPrefix(piece, t+":"); ok && t != "" && id != "" {
				places = append(places, Place{Flow: f.Name, Key: Key{BizType: t, BizID: id}})
			}
		}
	}
	return places
}

// moment is what begins like a date, a time or an address and is no id.
var moment = regexp.MustCompile(`^(\d{4}-\d\d-\d\d([T_]|$)|\d{4}/\d\d/\d\d|\d\d?:\d\d|\d+\.\d+\.\d+\.\d+)`)

// looksLikeID: long, of letters, digits and a few marks, and with enough digits.
func looksLikeID(piece string) bool {
	const minLength, minDigits, maxLength = 8, 6, 128
	if len(piece) < minLength || len(piece) > maxLength || moment.MatchString(piece) {
		return false
	}
	digits := 0
	for _, r := range piece {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || strings.ContainsRune("_-.:", r)):
		default:
			return false
		}
	}
	return digits >= minDigits
}
