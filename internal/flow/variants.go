package flow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxVariants is how many other spellings of one id are looked for.
	maxVariants = 16
	// maxVariedID is the length in bytes up to which an id has variants: nothing
	// that people type or copy is longer.
	maxVariedID = 1024
)

// Variants lists ids that a person would read like this one and whose bytes
// differ: blanks and line ends at its ends or none, upper and lower case,
// composed and decomposed letters, full-width and plain digits. They are what to
// look for when an id is not found; they are other keys and never stand for it.
// The likeliest come first, there are at most 16 of them, and id itself is not
// among them. An id that is not UTF-8, or longer than 1 KiB, has fewer or none.
func Variants(id string) []string {
	if len(id) > maxVariedID {
		return nil
	}
	bare := strings.TrimFunc(id, blank)
	spellings := []string{bare}
	if utf8.ValidString(id) {
		spellings = append(spellings,
			strings.ToLower(id), strings.ToUpper(id), norm.NFC.String(id), norm.NFD.String(id), plainWidth(id), fullWidthDigits(id),
			strings.ToLower(bare), strings.ToUpper(bare))
	}
	spellings = append(spellings, bare+" ", bare+"\n", " "+bare)
	return others(id, spellings, maxVariants)
}

// blank reports a character that is not seen at the end of a text.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == 0 }

// others lists the texts that differ from id and are not empty, each once.
func others(id string, texts []string, most int) []string {
	var list []string
	seen := map[string]bool{id: true, "": true}
	for _, text := range texts {
		if !seen[text] && len(list) < most {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}

// Full-width forms of the printable ASCII characters stand in their order at a
// fixed distance.
const (
	firstWide, lastWide = '！', '～'
	wideBy              = firstWide - '!'
)

// plainWidth turns full-width characters into plain ones.
func plainWidth(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= firstWide && r <= lastWide {
			return r - wideBy
		}
		return r
	}, id)
}

func fullWidthDigits(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r + wideBy
		}
		return r
	}, id)
}

const (
	// versions is how many versions of an id that carries one are looked for, and
	// firstVersions how many of an id that carries none: each costs a look into an
	// index with every look-up.
	versions      = 21
	firstVersions = 4
)

var (
	// versioned is an id that ends in a version: order:7:v2, order-7-V2, order_7.v02.
	versioned = regexp.MustCompile(`(?s)^(.+)([:\-_.][vV])(\d{1,6})$`)
	// numbered is one that ends in a bare number behind a part with a digit in
	// it: order:7:2, but not user:7, whose number is the id.
	numbered = regexp.MustCompile(`(?s)^(.*\d[^:]*)(:)(\d{1,2})$`)
)

// Versions lists the other versions of an id that carries one at its end
// (order:7:v2): its stem without a version, and the stem with the versions
// around its own, from 0 on. Of an id without a version it lists the ids with a
// ":v" and the versions 0 to 3. There are at most 22.
func Versions(id string) []string {
	if len(id) > maxVariedID {
		return nil
	}
	match := versioned.FindStringSubmatch(id)
	if match == nil {
		match = numbered.FindStringSubmatch(id)
	}
	if match == nil {
		return numberedFrom(id+":v", 0, firstVersions, 0)
	}
	stem, mark, text := match[1], match[2], match[3]
	width := 0
	if strings.HasPrefix(text, "0") {
		width = len(text)
	}
	own, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	list := append([]string{stem}, numberedFrom(stem+mark, max(own-versions/2, 0), versions, width)...)
	return others(id, list, versions+1)
}

func numberedFrom(head string, first, count, width int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%s%0*d", head, width, first+i)
	}
	return list
}
