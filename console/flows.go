package console

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/doctor"
	"idemscope/internal/flow"
)

const (
	// remarksAge is how old the doctor's report may be on pages of flows: it is
	// made anew every ten minutes without them.
	remarksAge = 15 * time.Minute
	// maxTypeRows bounds the table of biz_types of one flow.
	maxTypeRows = 200
	// lockWarning is the share of the lock's TTL from which the P99 is too near.
	lockWarning = 0.5
)

// flowsPage shows all flows with their figures.
type flowsPage struct {
	page
	Says        flowWords
	At          moment
	Flows       []flowCard
	Undeclared  []undeclaredView
	Grafana     string
	JSON, Again string
}

// flowPage shows one flow.
type flowPage struct {
	page
	At       moment
	Card     flowCard
	Flow     flow.Flow
	Says     flowWords
	Grafana  string
	Shapes   flowView
	Types    []typeRow
	MoreType int
	Queues   []queueRow
	Remarks  []doctor.Problem
	// Examined: the doctor has looked.
	Examined     bool
	FlowFindings string
	AllFlows     string
	JSON, Again  string
}

// flowCard is one flow with its figures.
type flowCard struct {
	flow.Flow
	Says flowWords
	URL  string
	// Figures are the five and the backlog.
	Figures []figureView
	// LockBars compares its lock with its run times.
	LockBars lockView
	// Counts are the doctor's remarks by severity, those that there are.
	Counts  []doctorCount
	Notes   []flow.Text
	Grafana string
}

// figureView is one figure.
type figureView struct {
	Label flow.Text
	// Value is empty when it is not known; then Why says why.
	Value, Why flow.Text
	// Tone is a severity, or empty.
	Tone string
	// About says what the value is about, and who measured it.
	About flow.Text
	// Split tells the parts of a sum; empty without.
	Split flow.Text
	Chart chart
}

// lockView compares the lock's TTL with the P99.
type lockView struct {
	// Tone is a severity; unknown when the two cannot be compared.
	Tone     string
	Sentence flow.Text
	// Bars are the TTL and the P99; none when they cannot be compared.
	Bars []bar
}

// typeRow is one biz_type in a table.
type typeRow struct {
	Name ident
	// Cells are conflicts, dedup hits, retries, P99 and stale records; empty where not known.
	Cells []flow.Text
}

// queueRow is one queue of a flow.
type queueRow struct {
	answer.QueueFigures
	Shown ident
	Word  flow.Text
}

// undeclaredView is one biz_type without a flow.
type undeclaredView struct {
	Name   ident
	Ledger string
	// Open is empty when it is not known.
	Open flow.Text
}

func (c *console) flows(g *gin.Context, v visit) error {
	if c.Figures == nil {
		return figuresOff()
	}
	figures, says := c.Figures(), newFlowWords()
	report := c.remarks(g.Request.Context())
	view := flowsPage{
		page: c.newPage(v, says.Title.In(v.lang)), Says: says, At: clock{c.Zone}.moment(figures.At),
		JSON: v.link("api/v1/flows", nil), Again: v.again(), Grafana: c.grafana("idemscope-overview", ""),
	}
	for _, f := range c.Flows {
		view.Flows = append(view.Flows, c.newFlowCard(v, f, figures, figures.PerHour(), report))
	}
	for _, u := range figures.Undeclared {
		one := undeclaredView{Name: newIdent(u.BizType), Ledger: u.Ledger}
		if u.OpenKnown {
			one.Open = countText(float64(u.Open))
		}
		view.Undeclared = append(view.Undeclared, one)
	}
	return c.render(g, http.StatusOK, v.lang, "flows", view)
}

func (c *console) flow(g *gin.Context, v visit) error {
	f, err := c.namedFlow(g, v)
	if err != nil {
		return err
	}
	figures, says := c.Figures(), newFlowWords()
	report := c.remarks(g.Request.Context())
	card := c.newFlowCard(v, f, figures, math.MaxInt, report)
	view := flowPage{
		page: c.newPage(v, says.Title.In(v.lang)+" · "+f.Name), Says: says, At: clock{c.Zone}.moment(figures.At), Card: card, Flow: f, Grafana: card.Grafana,
		Shapes:  flowView{Flow: f, LockKey: shapeOf(f.Lock), MarkerKey: shapeOf(f.Marker)},
		Remarks: remarksOn(report, f), Examined: !report.At.IsZero(), AllFlows: v.link("flows", nil),
		JSON: v.link("api/v1/flows/"+url.PathEscape(f.Name), nil), Again: v.again(),
	}
	if c.Options.Findings != nil {
		view.FlowFindings = v.link("findings", url.Values{"flow": {f.Name}})
	}
	found, _ := figures.Of(f.Name)
	for _, t := range found.Types {
		if len(view.Types) == maxTypeRows {
			view.MoreType = len(found.Types) - maxTypeRows
			break
		}
		view.Types = append(view.Types, newTypeRow(t, figures))
	}
	for _, q := range found.Queues {
		view.Queues = append(view.Queues, queueRow{QueueFigures: q, Shown: newIdent(q.Name), Word: roleText(q.Role)})
	}
	return c.render(g, http.StatusOK, v.lang, "flow", view)
}

// namedFlow is the flow of the address.
func (c *console) namedFlow(g *gin.Context, v visit) (flow.Flow, error) {
	if c.Figures == nil {
		return flow.Flow{}, figuresOff()
	}
	name := g.Param("name")
	i := slices.IndexFunc(c.Flows, func(f flow.Flow) bool { return f.Name == name })
	if i < 0 {
		f := noSuchFlow(v, nil, name)
		for _, known := range c.Flows {
			f.Choices = append(f.Choices, choice{Label: known.Name, URL: v.link("flows/"+url.PathEscape(known.Name), nil)})
		}
		return flow.Flow{}, f
	}
	return c.Flows[i], nil
}

// flowJSON is a flow as the API gives it.
type flowJSON struct {
	answer.FlowFiguresJSON
	Remarks []doctor.ProblemJSON `json:"remarks"`
}

func (c *console) flowsJSON(g *gin.Context, v visit) error {
	if c.Figures == nil {
		return figuresOff()
	}
	figures := c.Figures()
	c.json(g, http.StatusOK, c.newFlowsJSON(g, v, c.Flows, figures, figures.PerHour()))
	return nil
}

func (c *console) flowJSON(g *gin.Context, v visit) error {
	f, err := c.namedFlow(g, v)
	if err != nil {
		return err
	}
	c.json(g, http.StatusOK, c.newFlowsJSON(g, v, []flow.Flow{f}, c.Figures(), math.MaxInt))
	return nil
}

// flowsJSON has the shape of answer.FiguresJSON, with the doctor's remarks.
type flowsJSON struct {
	answer.FiguresJSON
	Flows []flowJSON `json:"flows"`
}

func (c *console) newFlowsJSON(g *gin.Context, v visit, flows []flow.Flow, figures answer.Figures, points int) flowsJSON {
	report := c.remarks(g.Request.Context())
	j := flowsJSON{FiguresJSON: figures.JSON(flows, points, v.lang), Flows: []flowJSON{}}
	for i, f := range flows {
		remarks := doctor.Report{Problems: remarksOn(report, f)}
		j.Flows = append(j.Flows, flowJSON{j.FiguresJSON.Flows[i], remarks.JSON(v.lang).Problems})
	}
	return j
}

// remarks is the doctor's last report; zero without a doctor.
func (c *console) remarks(ctx context.Context) doctor.Report {
	if c.Doctor == nil {
		return doctor.Report{}
	}
	return c.Doctor.Recent(ctx, remarksAge)
}

// remarksOn are the problems of a flow and of what it stands on.
func remarksOn(report doctor.Report, f flow.Flow) (problems []doctor.Problem) {
	about := []doctor.Subject{{Kind: doctor.KindFlow, Name: f.Name}, {Kind: doctor.KindLedger, Name: f.Ledger}}
	for _, key := range []*flow.RedisKey{f.Lock, f.Marker} {
		if key != nil {
			about = append(about, doctor.Subject{Kind: doctor.KindRedis, Name: key.Redis})
		}
	}
	if f.Queue != nil {
		about = append(about, doctor.Subject{Kind: doctor.KindBroker, Name: f.Queue.Broker})
		for _, name := range f.Queue.All() {
			about = append(about, doctor.Subject{Kind: doctor.KindQueue, Name: f.Queue.Broker + "/" + name})
		}
	}
	for _, p := range report.Problems {
		if slices.Contains(about, p.Subject) {
			problems = append(problems, p)
		}
	}
	return problems
}

// grafana is the address of a dashboard, about one flow unless name is empty;
// empty when the configuration names no Grafana.
func (c *console) grafana(uid, name string) string {
	if c.Grafana == "" {
		return ""
	}
	address := c.Grafana + "/d/" + uid
	if name != "" {
		address += "?" + url.Values{"var-flow": {name}}.Encode()
	}
	return address
}
