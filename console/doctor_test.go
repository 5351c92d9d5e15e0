package console

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idemscope/internal/doctor"
	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// cannedDoctor has always the same report.
type cannedDoctor struct{ report doctor.Report }

func (d cannedDoctor) Recent(context.Context, time.Duration) doctor.Report { return d.report }

// hostileQueue is a name that breaks what treats it as anything but bytes.
const hostileQueue = "rabbit/<script>alert(1)</script>\u202eq"

// shopReport has every check once: as a problem, as fine, and as one that could not be told.
func shopReport() doctor.Report {
	r := doctor.Report{At: readAt, Took: 180 * time.Millisecond}
	subjects := map[string]doctor.Subject{}
	for i, name := range []string{"main", "orders", hostileQueue, "payments"} {
		kind := []doctor.Kind{doctor.KindMySQL, doctor.KindLedger, doctor.KindQueue, doctor.KindFlow}[i]
		subjects[name] = doctor.Subject{Kind: kind, Name: name}
	}
	names := []string{"main", "orders", hostileQueue, "payments"}
	for _, severity := range doctor.Severities {
		for i, c := range doctor.Checks() {
			subject := subjects[names[i*len(names)/len(doctor.Checks())]]
			switch {
			case c.Severity != severity:
			case i%3 == 0:
				r.Problems = append(r.Problems, doctor.Problem{Check: c, Subject: subject,
					Seen:    flow.T("shop.%s: the lock lives 15 s, <b>seen</b>", "shop.%s：锁的 TTL 为 15 秒，<b>现象</b>", flow.Visible("\u202etable")),
					Fix:     flow.T("Do what the manual says.", "请按文档处理。"),
					Command: map[bool]string{true: "ALTER TABLE `shop`.`idempotent_record` ADD UNIQUE KEY uk_biz (`biz_type`, `biz_id`); -- <script>"}[i%2 == 0]})
			case i%3 == 1:
				r.Fine = append(r.Fine, doctor.Passed{Check: c, Subject: subject})
			default:
				r.Unsure = append(r.Unsure, doctor.Unsure{Check: c, Subject: subject, Reason: flow.T("connection refused: nothing listens at 127.0.0.1:3306", "连接被拒绝：127.0.0.1:3306 没有服务在监听")})
			}
		}
	}
	return r
}

func doctorShop(t testing.TB, r doctor.Report) Options {
	t.Helper()
	o := shop(t)
	o.Doctor, o.Zone = cannedDoctor{r}, time.FixedZone("+08:00", 8*3600)
	return o
}

func TestDoctorRoutes(t *testing.T) {
	server, off := serve(t, doctorShop(t, shopReport())), serve(t, shop(t))
	const page, api = "text/html; charset=utf-8", "application/json; charset=utf-8"
	for prefix, kind := range map[string]string{"/doctor": page, "/api/v1/doctor": api} {
		for _, c := range []struct {
			address, method string
			status          int
		}{{server.URL, "GET", 200}, {server.URL, "HEAD", 200}, {server.URL, "POST", 405}, {off.URL, "GET", 404}} {
			got := ask(t, c.method, c.address+prefix)
			if got.StatusCode != c.status || got.Header.Get("Content-Type") != kind {
				t.Errorf("%s %s: %d %q, want %d", c.method, prefix, got.StatusCode, got.Header.Get("Content-Type"), c.status)
			}
			checkHeaders(t, got, "no-store")
		}
	}
	if home := get(t, server.URL+"/?lang=zh"); !strings.Contains(home.body, `href="./doctor?lang=zh"`) {
		t.Error("no page leads to the report")
	}
	if home := get(t, off.URL+"/"); strings.Contains(home.body, "doctor") {
		t.Error("a page leads to a report that is not there")
	}
}

func TestTheReportAsJSON(t *testing.T) {
	server := serve(t, doctorShop(t, shopReport()))
	for lang, want := range map[string]string{"en": "Do what the manual says.", "zh": "请按文档处理。"} {
		got := get(t, server.URL+"/api/v1/doctor?lang="+lang)
		d := json.NewDecoder(strings.NewReader(got.body))
		d.DisallowUnknownFields()
		var j doctor.JSON
		if err := d.Decode(&j); err != nil {
			t.Fatal(err)
		}
		if got.StatusCode != http.StatusOK || len(j.Problems) != j.Critical+j.Warnings+j.Infos || j.FineChecks != len(j.Fine) ||
			len(j.Problems)+len(j.Fine)+len(j.CannotTell) != len(doctor.Checks()) || j.Problems[0].Fix != want || j.Problems[0].Severity != doctor.Critical {
			t.Errorf("%s: %d %+v", lang, got.StatusCode, j.Problems[0])
		}
		if strings.Contains(got.body, "\u202e") {
			t.Error("an invisible mark is in the JSON")
		}
	}
}

func TestTheReportAsAPage(t *testing.T) {
	report := shopReport()
	server := serve(t, doctorShop(t, report))
	got := get(t, server.URL+"/doctor?lang=en")
	got.document(t)
	for _, hostile := range []string{"<script>alert", "\u202e", "<b>seen"} {
		if strings.Contains(got.body, hostile) {
			t.Errorf("%q is in the page as it is", hostile)
		}
	}
	for _, p := range report.Problems {
		if p.Manual != "" && !strings.Contains(got.body, `href="`+p.Manual+`" rel="noreferrer"`) {
			t.Errorf("%s: no link to %s", p.Code, p.Manual)
		}
	}
	for _, want := range []string{"connection refused: nothing listens", "checks fine", "&lt;script&gt;alert(1)&lt;/script&gt;\\u202eq", "2026-03-15 02:07:31.412 &#43;08:00"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	empty := get(t, serve(t, doctorShop(t, doctor.Report{At: readAt})).URL+"/doctor?lang=zh")
	if !strings.Contains(empty.body, "未发现问题。") {
		t.Error(empty.body)
	}
}

func TestDoctorWords(t *testing.T) {
	table := reflect.ValueOf(newDoctorWords())
	for i := range table.NumField() {
		name, text := table.Type().Field(i).Name, table.Field(i).Interface().(flow.Text)
		if text.EN == "" || strings.IndexFunc(text.EN, han) >= 0 || strings.IndexFunc(text.ZH, han) < 0 {
			t.Errorf("%s: %+v", name, text)
		}
	}
}

// TestDoctorPictures loads the report in all looks: with everything, and without a problem.
func TestDoctorPictures(t *testing.T) {
	dir, b := pictures(t), openBrowser(t)
	full := serve(t, doctorShop(t, shopReport()))
	b.pictures(t, dir, "doctor", full.URL+"/doctor?", looks())
	copies := value[int](t, b, `document.querySelectorAll("button.copy").length`)
	if commands := value[int](t, b, `document.querySelectorAll(".complaint pre").length`); copies != commands || copies == 0 {
		t.Errorf("%d buttons for %d commands", copies, commands)
	}
	if open := value[bool](t, b, `document.querySelector(".fine-checks").open`); open {
		t.Error("what is fine takes the page")
	}
	b.do(t, chromedp.Click(chromedp.CSS(".fine-checks summary")))
	testkit.Eventually(t, 10*time.Second, func() bool { return value[bool](t, b, `document.querySelector(".fine-checks").open`) }, "it does not open")
	b.quiet(t, "doctor")
	empty := serve(t, doctorShop(t, doctor.Report{At: readAt, Fine: shopReport().Fine}))
	b.pictures(t, dir, "doctor-fine", empty.URL+"/doctor?", looks()[:3])
}
