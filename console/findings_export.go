package console

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/flow"
)

// findingsCSV is the whole list that passes the filter as a table for a spreadsheet.
func (c *console) findingsCSV(g *gin.Context, v visit) error {
	asked, err := c.askFindings(v)
	if err != nil {
		return err
	}
	// Without this mark, Excel reads a file as if it were in a single-byte encoding.
	const byteOrderMark = "\uFEFF"
	var b strings.Builder
	b.WriteString(byteOrderMark)
	writeRow(&b, "severity", "verdict", "layer", "flow", "biz_type", "biz_id", "biz_type_hex", "biz_id_hex", "age_seconds", "found", "judged", "sentence")
	for _, f := range asked.list {
		age := ""
		if known, ok := f.Age(asked.all.At); ok {
			age = strconv.FormatInt(int64(known.Seconds()), 10)
		}
		writeRow(&b, string(f.Severity), string(f.Code), string(f.Layer), f.Flow, flow.Visible(f.Key.BizType), flow.Visible(f.Key.BizID),
			hexUnlessPlain(f.Key.BizType), hexUnlessPlain(f.Key.BizID), age,
			f.Since.In(c.Zone).Format(time.RFC3339), f.JudgedAt.In(c.Zone).Format(time.RFC3339), f.Sentence.In(v.lang))
	}
	attach(g, "idemscope-findings.csv")
	g.Data(http.StatusOK, "text/csv; charset=utf-8", []byte(b.String()))
	return nil
}

// findingsFile is the same as JSON: every finding, and every byte.
func (c *console) findingsFile(g *gin.Context, v visit) error {
	asked, err := c.askFindings(v)
	if err != nil {
		return err
	}
	attach(g, "idemscope-findings.json")
	link := func(p flow.Place) string { return c.placeURL(v, p) }
	c.json(g, http.StatusOK, asked.all.JSON(asked.list, len(asked.list), "", v.lang, link))
	return nil
}

// writeRow writes one line of RFC 4180. Every cell is quoted, so that no separator
// of any locale splits it.
func writeRow(b *strings.Builder, cells ...string) {
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.ReplaceAll(harmless(cell), `"`, `""`) + `"`)
	}
	b.WriteString("\r\n")
}

// formulaMarks begin what a spreadsheet would run instead of show; full-width ones
// do so, too, in some languages.
const formulaMarks = "=+-@\t\r\n＝＋－＠"

// harmless puts an apostrophe before a cell that a spreadsheet would take for a formula.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune(formulaMarks, []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}

// hexUnlessPlain spells out the bytes of what a cell cannot show as it is: invisible
// ones, what looks like a formula, and digits that a spreadsheet would round.
func hexUnlessPlain(s string) string {
	if plain(s) && harmless(s) == s && !roundedDigits(s) {
		return ""
	}
	return hex.EncodeToString([]byte(s))
}

// roundedDigits: a number of more digits than a spreadsheet keeps, or one whose
// leading zeros it drops.
func roundedDigits(s string) bool {
	const kept = 15
	return s != "" && strings.Trim(s, "0123456789") == "" && (len(s) > kept || len(s) > 1 && s[0] == '0')
}
