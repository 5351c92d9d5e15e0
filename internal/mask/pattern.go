package mask

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// pattern finds one kind of personal data.
type pattern struct {
	name string
	hide func(string) string
	// whole reports that a text is nothing else.
	whole func(string) bool
}

// known are all patterns. E-mail addresses come first, because their names may be
// phone numbers; cards before phones, because they are longer.
var known = []pattern{
	{"email", hideEmails, wholly(email, isEmail)},
	{"card", hideCards, func(s string) bool { return cardAt(s) == (span{0, len(s)}) && s != "" }},
	{"phone", hidePhones, wholly(phone, func(s string, at span) bool { return isPhone(s, at) })},
}

// span is a part of a text.
type span struct{ from, to int }

func wholly(shape *regexp.Regexp, fits func(string, span) bool) func(string) bool {
	return func(s string) bool {
		at := shape.FindStringIndex(s)
		return at != nil && at[0] == 0 && at[1] == len(s) && fits(s, span{at[0], at[1]})
	}
}

var (
	// email also knows an at sign that is written for an address or for JSON.
	email = regexp.MustCompile(`[^\s\x00-\x1f\x7f@"'<>,;:()\[\]{}\\/|=&?]+(?:@|%40|\\u0040)[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)
	// phone is a mobile number of China, or a number with a plus sign and its country.
	phone = regexp.MustCompile(`(?:(?:\+|00)?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}|\+[1-9](?:[ -]?\(?\d\)?){6,14}`)
	// digits is a run of digits with single blanks or dashes inside.
	digits = regexp.MustCompile(`\d+(?:[ -]\d+)*`)
)

func isEmail(string, span) bool { return true }

func hideEmails(s string) string {
	return replace(s, email, isEmail, func(found string) string {
		at := strings.IndexAny(found, "@%\\")
		for _, sign := range []string{"@", "%40", `\u0040`} {
			if i := strings.Index(found, sign); i >= 0 {
				at = i
				break
			}
		}
		return first(found[:at]) + hidden + found[at:]
	})
}

// first returns the first character of a text.
func first(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return ""
	}
	return s[:size]
}

// isPhone: no digit stands beside it, so that a part of a longer number is none.
func isPhone(s string, at span) bool {
	return (at.from == 0 || !isDigit(s[at.from-1])) && (at.to == len(s) || !isDigit(s[at.to]))
}

func hidePhones(s string) string {
	return replace(s, phone, isPhone, func(found string) string {
		const lead = 3
		end := 4
		if len(found) < 11 {
			end = 2
		}
		if cut := len(found) - 11; cut > 0 && !strings.ContainsAny(found, " -") && strings.HasSuffix(found[:cut], "86") {
			return found[:cut] + found[cut:cut+lead] + "****" + found[len(found)-end:]
		}
		return found[:lead] + "****" + found[len(found)-end:]
	})
}

// hideCards keeps the last four digits.
func hideCards(s string) string {
	var out strings.Builder
	for {
		at := cardAt(s)
		if at.to == 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:at.from])
		out.WriteString("************" + lastDigits(s[at.from:at.to], 4))
		s = s[at.to:]
	}
}

func lastDigits(s string, n int) string {
	only := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
	return only[len(only)-n:]
}

// cardAt finds the first card number; its end is 0 when there is none.
func cardAt(s string) span {
	for _, run := range digits.FindAllStringIndex(s, -1) {
		if at, ok := cardIn(s, run[0], run[1]); ok {
			return at
		}
	}
	return span{}
}

// cardIn looks for a card number made of whole groups of a run of digits: a date
// may stand before it, with nothing but a blank between them.
func cardIn(s string, from, to int) (span, bool) {
	starts, ends := groups(s, from, to)
	for i, start := range starts {
		found, ok := span{}, false
		number := ""
		for j := i; j < len(ends); j++ {
			if number += s[starts[j]:ends[j]]; len(number) > 19 {
				break
			}
			if isCard(number) {
				found, ok = span{start, ends[j]}, true
			}
		}
		if ok {
			return found, true
		}
	}
	return span{}, false
}

// groups lists where the groups of digits of a run begin and end.
func groups(s string, from, to int) (starts, ends []int) {
	for i := from; i < to; i++ {
		if !isDigit(s[i]) {
			continue
		}
		if i == from || !isDigit(s[i-1]) {
			starts = append(starts, i)
		}
		if i+1 == to || !isDigit(s[i+1]) {
			ends = append(ends, i+1)
		}
	}
	return starts, ends
}

// isCard reports 13 to 19 digits that begin like those of a card and whose last
// one is the check digit of the others (Luhn).
func isCard(number string) bool {
	if len(number) < 13 || len(number) > 19 || !strings.ContainsRune("3456", rune(number[0])) && !(number >= "2221" && number < "2721") {
		return false
	}
	sum := 0
	for i := range len(number) {
		digit := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// replace exchanges every match that fits. After one that does not, the search
// goes on a character later, because the next may begin inside it.
func replace(s string, shape *regexp.Regexp, fits func(string, span) bool, with func(string) string) string {
	var out strings.Builder
	done := 0
	for from := 0; from < len(s); {
		at := shape.FindStringIndex(s[from:])
		if at == nil {
			break
		}
		found := span{from + at[0], from + at[1]}
		if !fits(s, found) {
			// Past the digits that made it a part of something longer.
			from = found.from + 1
			for from < len(s) && isDigit(s[from]) && isDigit(s[from-1]) {
				from++
			}
			continue
		}
		out.WriteString(s[done:found.from])
		out.WriteString(with(s[found.from:found.to]))
		done, from = found.to, found.to
	}
	out.WriteString(s[done:])
	return out.String()
}
