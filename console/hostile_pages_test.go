package console

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// TestHostileStores puts every hostile text into real stores, and reads it back from
// every page, file and API: it is shown, and it does nothing.
func TestHostileStores(t *testing.T) {
	r := newHostileRig(t)
	found := answer.Findings{}
	o := Options{Desk: r.desk, Flows: r.flows, Actions: true, Findings: func() answer.Findings { return found }}
	server := serve(t, o)
	keys := map[string]flow.Key{"tame": r.put(t, "20260314000123")}
	for name, text := range hostileValues() {
		keys[name] = r.put(t, text)
	}
	for name, k := range keys {
		a, err := r.desk.Answer(t.Context(), flow.Place{Flow: hostileFlow, Key: k})
		if err != nil {
			t.Fatal(err)
		}
		f, ok := a.Finding()
		if !ok {
			t.Fatalf("%s is no finding: %s", name, a.Verdict.Sentence.EN)
		}
		found.At, found.List = a.At, append(found.List, f)
	}
	answer.SortFindings(found.List)

	known := vocabulary{}
	known.learn(get(t, server.URL+keyPath(hostileType, keys["tame"].BizID)).document(t))
	known.learn(get(t, server.URL+"/search?q=nothing+here").document(t))
	all := found.List
	found.List = slices.DeleteFunc(slices.Clone(all), func(f answer.Finding) bool { return f.Key != keys["tame"] })
	for _, query := range []string{"?lang=zh", "?biz_type=plain&sort=age", "?sort=age&older=1s&limit=1&after=0.0.0"} {
		known.learn(get(t, server.URL+"/findings"+query).document(t))
	}
	found.List = all
	for name, text := range hostileValues() {
		t.Run(name, func(t *testing.T) { checkHostileKey(t, server.URL, keys[name], text, known) })
	}
	t.Run("findings", func(t *testing.T) { checkHostileFindings(t, server.URL, found, known) })
}

// vocabulary holds the elements and attributes of tame pages.
type vocabulary map[string]bool

func (v vocabulary) learn(d document) {
	for _, n := range d.elements() {
		v[n.Data] = true
		for _, a := range n.Attr {
			v[n.Data+" "+a.Key] = true
		}
	}
	// What only odd bytes bring about.
	for _, extra := range []string{"span class", "code class", "code tabindex", "details open", "option selected", "input value", "input name", "a rel"} {
		v[extra] = true
	}
}

// checkTame: a page has no element, attribute or raw character that no tame page has.
func checkTame(t *testing.T, got reply, known vocabulary) document {
	t.Helper()
	d := got.document(t)
	foreign := vocabulary{}
	foreign.learn(d)
	for word := range foreign {
		if !known[word] {
			t.Errorf("a foreign element or attribute <%s>", word)
		}
	}
	// The search box repeats what was typed, byte by byte.
	checkPrintable(t, searchBox.ReplaceAllString(got.body, ""))
	return d
}

// checkPrintable: nothing in an answer moves a cursor or turns the reading order.
func checkPrintable(t *testing.T, body string) {
	t.Helper()
	if !utf8.ValidString(body) {
		t.Errorf("not UTF-8")
	}
	for _, r := range strings.TrimPrefix(body, "\uFEFF") {
		if r != '\n' && r != '\r' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%U stands in it as it is", r)
			return
		}
	}
}

func checkHostileKey(t *testing.T, base string, k flow.Key, text string, known vocabulary) {
	t.Helper()
	path := keyPath(k.BizType, k.BizID, "lang", "zh")
	got := get(t, base+path)
	if got.StatusCode != 200 || len(got.Header.Values("Set-Cookie")) > 0 {
		t.Fatalf("%d %v", got.StatusCode, got.Header)
	}
	page := checkTame(t, got, known)
	shownTexts := 0
	for _, code := range page.one(t, "div", "layers").all("code", "id") {
		if got := code.text(); got == flow.Visible(text) || len(got) > 500 && strings.HasPrefix(flow.Visible(text), got) {
			shownTexts++
		}
	}
	// The marker's value, the result and the worker; an empty one is said to be empty.
	if text != "" && shownTexts < 3 {
		t.Errorf("shown %d times, want the value, the result and the worker", shownTexts)
	}
	query := strings.TrimPrefix(path, "/key")
	checkHostileJSON(t, get(t, base+"/api/v1/lookup"+query+"&download=1"), k, text)
	markdown := get(t, base+"/key.md"+query)
	checkFile(t, markdown, "text/markdown; charset=utf-8", ".md")
	checkPrintable(t, markdown.body)
	checkMarkdown(t, markdown.body)
	if pre := page.one(t, "details", "report").all("pre", "")[0].text(); strings.Count(pre, "\n") != strings.Count(markdown.body, "\n") {
		t.Errorf("the report on the page has another number of lines than the file")
	}
	for _, q := range []string{text, hostileType + ":" + text, "12:00:00 WARN idempotent:" + hostileType + ":" + text + " is set"} {
		search := get(t, base+"/search?"+url.Values{"q": {q}}.Encode())
		switch {
		case search.StatusCode == 303:
			if to, err := url.Parse(search.Header.Get("Location")); err != nil || to.Host != "" || to.Path != "./key" {
				t.Errorf("a search leads to %q", search.Header.Get("Location"))
			}
		case q != "":
			checkTame(t, search, known)
		}
	}
}

func checkHostileJSON(t *testing.T, got reply, k flow.Key, text string) {
	t.Helper()
	checkFile(t, got, "application/json; charset=utf-8", ".json")
	var a answer.JSON
	if err := json.Unmarshal([]byte(got.body), &a); err != nil || len(a.Record.Rows) == 0 || a.Marker == nil || a.Marker.Value == nil || a.Record.Rows[0].Result == nil {
		t.Fatalf("%v: %.300s", err, got.body)
	}
	row, kept := a.Record.Rows[0], text
	if len(text) > 1000 { // of a long column, the ledger reads the beginning
		kept = text[:len(*row.Result)]
	}
	for name, pair := range map[string][3]string{
		"biz_id": {a.Key.BizID, a.Key.BizIDHex, k.BizID}, "biz_type": {a.Key.BizType, a.Key.BizTypeHex, k.BizType},
		"row": {row.BizID, row.BizIDHex, k.BizID}, "result": {*row.Result, row.ResultHex, kept}, "worker": {*row.Worker, row.WorkerHex, text},
		"queue": {a.Broker.Queues[0].Name, "", oddQueue},
	} {
		checkExact(t, name, pair[0], pair[1], pair[2])
	}
	value := text[:min(len(text), 4096)] // as much as is read of a value
	checkExact(t, "marker", *a.Marker.Value, a.Marker.ValueHex, value)
}

// checkExact: text and hex together give the bytes back.
func checkExact(t *testing.T, name, text, hexed, want string) {
	t.Helper()
	if hexed == "" && text != want || hexed != "" && hexed != hex.EncodeToString([]byte(want)) {
		t.Errorf("%s: %.60q %.60q, want %.60q", name, text, hexed, want)
	}
}

var searchBox = regexp.MustCompile(`name="q" type="text" value="[^"]*"`)

var fileHeader = regexp.MustCompile(`^attachment; filename="idemscope-[A-Za-z0-9_.-]{1,110}"$`)

func checkFile(t *testing.T, got reply, kind, ext string) {
	t.Helper()
	disposition := got.Header.Get("Content-Disposition")
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != kind || !fileHeader.MatchString(disposition) || !strings.HasSuffix(disposition, ext+`"`) {
		t.Errorf("%d %q %q", got.StatusCode, got.Header.Get("Content-Type"), disposition)
	}
}

func checkHostileFindings(t *testing.T, base string, found answer.Findings, known vocabulary) {
	t.Helper()
	for _, query := range []string{"?lang=zh", "?sort=age&limit=1000", "?verdict=stuck&limit=7"} {
		checkTame(t, get(t, base+"/findings"+query), known)
	}
	page := get(t, base+"/findings?sort=worst&limit=1000").document(t)
	var picked []flow.Place
	for _, box := range page.all("input", "") {
		if name, _ := attribute(box.Node, "name"); name == "place" {
			word, _ := attribute(box.Node, "value")
			p, err := flow.DecodePlace(word)
			if err != nil {
				t.Errorf("%q: %v", word, err)
			}
			picked = append(picked, p)
		}
	}
	if len(picked) != len(found.List) {
		t.Errorf("%d boxes for %d findings", len(picked), len(found.List))
	}
	checkCSV(t, get(t, base+"/findings.csv?lang=zh"), found)
	file := get(t, base+"/findings.json")
	checkFile(t, file, "application/json; charset=utf-8", ".json")
	var list answer.FindingsJSON
	if err := json.Unmarshal([]byte(file.body), &list); err != nil || len(list.Findings) != len(found.List) || list.Total != len(found.List) {
		t.Fatalf("%v, %d of %d", err, len(list.Findings), len(found.List))
	}
	for i, f := range found.List {
		if picked[i] != f.Place {
			t.Errorf("box %d stands for %+v, want %+v", i, picked[i], f.Place)
		}
		checkExact(t, "biz_id", list.Findings[i].Key.BizID, list.Findings[i].Key.BizIDHex, f.Key.BizID)
	}
}

// checkCSV: a reader of RFC 4180 gets every finding back, and no spreadsheet gets a formula.
func checkCSV(t *testing.T, got reply, found answer.Findings) {
	t.Helper()
	checkFile(t, got, "text/csv; charset=utf-8", ".csv")
	checkPrintable(t, got.body)
	body, marked := strings.CutPrefix(got.body, "\uFEFF")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || !marked || len(rows) != len(found.List)+1 || strings.Count(body, "\r\n") != len(rows) {
		t.Fatalf("%v, marked %v, %d rows for %d findings", err, marked, len(rows), len(found.List))
	}
	column := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	for i, f := range found.List {
		row := rows[i+1]
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
				t.Errorf("a formula: %.60q", cell)
			}
		}
		id, hexed := column(row, "biz_id"), column(row, "biz_id_hex")
		if hexed == "" && id != f.Key.BizID || hexed != "" && hexed != hex.EncodeToString([]byte(f.Key.BizID)) {
			t.Errorf("%.60q: %.60q %.60q", f.Key.BizID, id, hexed)
		}
		if !strings.HasSuffix(id, flow.Visible(f.Key.BizID)) {
			t.Errorf("%.60q is shown as %.60q", f.Key.BizID, id)
		}
	}
}

var (
	fence    = regexp.MustCompile("^(`{3,})text$")
	escaped  = regexp.MustCompile("\\\\[!-/:-@\\[-`{-~]")
	headings = regexp.MustCompile(`(?m)^#{1,3} `)
)

// checkMarkdown reads a report the way CommonMark does: fenced blocks end where they
// should, and outside of code nothing is markup but what the report itself writes.
func checkMarkdown(t *testing.T, report string) {
	t.Helper()
	var outside strings.Builder
	open := ""
	for line := range strings.SplitSeq(report, "\n") {
		if open != "" {
			if strings.Trim(line, "`") == "" && len(line) >= len(open) {
				open = ""
			}
			continue
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			open = m[1]
			continue
		}
		outside.WriteString(withoutSpans(line) + "\n")
	}
	if open != "" {
		t.Errorf("a fenced block does not end")
	}
	text := escaped.ReplaceAllString(outside.String(), "")
	for _, own := range []string{"**", "*(empty)*"} {
		text = strings.ReplaceAll(text, own, "")
	}
	text = headings.ReplaceAllString(text, "")
	for _, mark := range []string{"<", ">", "[", "]", "|", "`", "*", "_", "~", "://", "www.", "#", "&", "{", "}", "!", "$", "@"} {
		if at := strings.Index(text, mark); at >= 0 {
			t.Errorf("%q stands outside of code: %q", mark, text[max(0, at-40):min(len(text), at+40)])
		}
	}
	if n := len(regexp.MustCompile(`(?m)^# `).FindAllString(outside.String(), -1)); n != 1 {
		t.Errorf("%d titles", n)
	}
}

// withoutSpans takes the code spans of a line away: each begins with a run of
// backticks and ends with the next run of the same length.
func withoutSpans(line string) string {
	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	var rest strings.Builder
	at := 0
	for i := 0; i < len(runs); i++ {
		if runs[i][0] < at || runs[i][0] > 0 && line[runs[i][0]-1] == '\\' {
			continue
		}
		for _, end := range runs[i+1:] {
			if end[1]-end[0] == runs[i][1]-runs[i][0] {
				rest.WriteString(line[at:runs[i][0]])
				at = end[1]
				break
			}
		}
	}
	return rest.String() + line[at:]
}
