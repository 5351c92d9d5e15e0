package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/doctor"
	"idemscope/internal/flow"
)

// Doctor examines the set-up.
type Doctor interface {
	// Recent is the last report, made anew unless it is younger than age.
	Recent(ctx context.Context, age time.Duration) doctor.Report
}

// reportAge is how old a shown report may be: a reload button is quickly pressed.
const reportAge = 10 * time.Second

// doctorPage is the report on the set-up.
type doctorPage struct {
	page
	Says        doctorWords
	At          moment
	Counts      []doctorCount
	Groups      []doctorGroup
	Gaps        []gapView
	Fine        int
	FineBy      []fineView
	JSON, Again string
}

// doctorCount is how many problems matter how much.
type doctorCount struct {
	Severity doctor.Severity
	Word     flow.Text
	Count    int
}

// doctorGroup are the problems of one severity, by subject.
type doctorGroup struct {
	doctorCount
	Subjects []subjectView
}

// subjectView is one subject with its problems.
type subjectView struct {
	Kind     flow.Text
	Name     ident
	Problems []doctor.Problem
}

// gapView is what could not be told of one subject, and why.
type gapView struct {
	Kind   flow.Text
	Name   ident
	Reason flow.Text
	Checks []doctor.Check
}

// fineView is what was found in order about one subject.
type fineView struct {
	Kind  flow.Text
	Name  ident
	Codes []string
}

func (c *console) askDoctor(g *gin.Context) (doctor.Report, error) {
	if c.Doctor == nil {
		return doctor.Report{}, doctorOff()
	}
	return c.Doctor.Recent(g.Request.Context(), reportAge), nil
}

func (c *console) doctorJSON(g *gin.Context, v visit) error {
	report, err := c.askDoctor(g)
	if err != nil {
		return err
	}
	c.json(g, http.StatusOK, report.JSON(v.lang))
	return nil
}

func (c *console) doctor(g *gin.Context, v visit) error {
	report, err := c.askDoctor(g)
	if err != nil {
		return err
	}
	says := newDoctorWords()
	view := doctorPage{
		page: c.newPage(v, says.Title.In(v.lang)), Says: says, At: clock{c.Zone}.moment(report.At), Fine: len(report.Fine),
		JSON: v.link("api/v1/doctor", nil), Again: v.again(),
	}
	for _, severity := range doctor.Severities {
		count := doctorCount{severity, severity.Word(), report.Count(severity)}
		view.Counts = append(view.Counts, count)
		if count.Count > 0 {
			view.Groups = append(view.Groups, doctorGroup{count, subjectsOf(report, severity)})
		}
	}
	for _, gap := range report.Gaps() {
		view.Gaps = append(view.Gaps, gapView{gap.Subject.Kind.Word(), newIdent(gap.Subject.Name), gap.Reason, gap.Checks})
	}
	view.FineBy = fineOf(report)
	return c.render(g, http.StatusOK, v.lang, "doctor", view)
}

// subjectsOf puts the problems of one severity together by subject, in the
// order of the report.
func subjectsOf(report doctor.Report, severity doctor.Severity) (views []subjectView) {
	var subjects []doctor.Subject
	for _, p := range report.Problems {
		if p.Severity != severity {
			continue
		}
		i := slices.Index(subjects, p.Subject)
		if i < 0 {
			i = len(subjects)
			subjects = append(subjects, p.Subject)
			views = append(views, subjectView{Kind: p.Subject.Kind.Word(), Name: newIdent(p.Subject.Name)})
		}
		views[i].Problems = append(views[i].Problems, p)
	}
	return views
}

func fineOf(report doctor.Report) (views []fineView) {
	var subjects []doctor.Subject
	for _, f := range report.Fine {
		i := slices.Index(subjects, f.Subject)
		if i < 0 {
			i = len(subjects)
			subjects = append(subjects, f.Subject)
			views = append(views, fineView{Kind: f.Subject.Kind.Word(), Name: newIdent(f.Subject.Name)})
		}
		views[i].Codes = append(views[i].Codes, f.Code)
	}
	return views
}
