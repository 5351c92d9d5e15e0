package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// Cleanup tells where the janitor's tasks stand, and stops them. All but Replan
// answer from memory.
type Cleanup interface {
	// Tasks are those configured, in their order.
	Tasks() []CleanupTask
	// Runs lists those of the past, the newest first, at most limit.
	Runs(limit int) []CleanupRun
	// Replan makes the plan of a task anew, with a few bounded statements.
	Replan(ctx context.Context, task string) error
	// Stop ends the run of a task, and keeps it from running before the next window.
	Stop(task, who string) error
}

// CleanupTask is where one task stands.
type CleanupTask struct {
	Name, Ledger, Action, Server string
	Tables                       []string
	Retain                       time.Duration
	// State is running, throttled, waiting_for_window, idle, not_enabled, stopped,
	// refused or failed; Why says more, or is empty.
	State   string
	Why     flow.Text
	Enabled bool
	// Opens and Closes are the present window, or the next; zero without one.
	Opens, Closes time.Time
	StopFile      string
	// Run is the run at work; nil when there is none. Plan is the last plan; nil
	// before the first.
	Run  *CleanupProgress
	Plan *CleanupPlan
}

// CleanupProgress is how far a run is.
type CleanupProgress struct {
	Began time.Time
	// By is schedule or command.
	By, Table      string
	Number, Tables int
	// Planned is how many rows were to go, estimated.
	Rows, Planned    int64
	Share, PerSecond float64
	// Left is the time to the end at this pace; 0 when it cannot be told.
	Left time.Duration
	// Hold is a reason why it waits, as in metrics; empty when it does not.
	Hold string
}

// CleanupPlan is what a run would do.
type CleanupPlan struct {
	// Made is when it was made. Cutoff is zero when the server was not read.
	Made, Cutoff time.Time
	// Exact: every row was counted. Else the numbers are estimated from samples.
	Exact bool
	// Rows is how many rows a run looks at, Candidates how many of them go, and
	// Processing how many are in processing, beyond the retention.
	Rows, Candidates, Processing, Batches int64
	// Kept says why the other rows stay.
	Kept   []CleanupKept
	Tables []CleanupTable
	// Forecast is nil where nothing could be told.
	Forecast CleanupForecast
	// Checks are all that was asked before a run.
	Checks []CleanupCheck
	// Refusals speak against a run; Unread says what could not be read.
	Refusals []CleanupRefusal
	Unread   flow.Text
}

// CleanupKept is how many rows stay, and why.
type CleanupKept struct {
	Kind string
	Why  flow.Text
	Rows int64
}

// CleanupTable is the room that one table takes.
type CleanupTable struct {
	Name, Archive string
	Candidates    int64
	// Sized: the server told its size, in bytes.
	Sized             bool
	Data, Index, Free int64
	SQL               []string
}

// CleanupCheck is one question before a run, with its answer.
type CleanupCheck struct {
	Code string
	// Result is passed, refused, allowed, not_known or off; Word is that for people.
	Result string
	Word   flow.Text
	Text   flow.Text
}

// CleanupRefusal is why a task must not run.
type CleanupRefusal struct {
	Code string
	Text flow.Text
}

// CleanupForecast is what can be told of the days to come; nil is what nobody knows.
type CleanupForecast struct {
	PerDay, PerSecond *float64
	Takes             *time.Duration
	PerWindow         *int64
	BinlogBytes       *int64
	Behind            bool
	// Notes word all of it.
	Notes []flow.Text
}

// CleanupRun is a run of the past over one table.
type CleanupRun struct {
	Task, Table, Archive string
	Began, Ended         time.Time
	Rows                 int64
	Batches              int
	// End is done, window, stopped and so on, as in reports; Why says more.
	End string
	Why flow.Text
	// Cutoff is zero when the server was not read.
	Cutoff time.Time
	// By is schedule or command.
	By string
}

const (
	// shownRuns is how many runs of the past the page shows, maxRuns how many the API gives.
	shownRuns = 50
	maxRuns   = 1000
	// planAge is how old a plan has to be before it is made anew on demand.
	planAge = time.Minute
	// planTimeout bounds that.
	planTimeout = 30 * time.Second
)

// cleanupPage shows all tasks and the runs of the past.
type cleanupPage struct {
	page
	Says        cleanupWords
	At          moment
	Tasks       []cleanupView
	Runs        []runView
	JSON, Again string
}

func (c *console) cleanup(g *gin.Context, v visit) error {
	if c.Cleanup == nil {
		return cleanupOff()
	}
	if err := c.planAnew(g, v); err != nil {
		return err
	}
	says, now := newCleanupWords(), time.Now()
	view := cleanupPage{
		page: c.newPage(v, says.Title.In(v.lang)), Says: says, At: clock{c.Zone}.moment(now.Truncate(time.Second)),
		JSON: v.link("api/v1/cleanup", nil), Again: v.again(),
	}
	for _, t := range c.Cleanup.Tasks() {
		task := c.newCleanupView(v, t, now, c.mayChange(v))
		if task.MayStop {
			task.Token = c.formToken(g)
		}
		view.Tasks = append(view.Tasks, task)
	}
	for _, r := range c.Cleanup.Runs(shownRuns) {
		view.Runs = append(view.Runs, c.newRunView(r, now))
	}
	return c.render(g, http.StatusOK, v.lang, "cleanup", view)
}

func (c *console) cleanupJSON(g *gin.Context, v visit) error {
	if c.Cleanup == nil {
		return cleanupOff()
	}
	answer := CleanupJSON{[]CleanupTaskJSON{}, []CleanupRunJSON{}}
	for _, t := range c.Cleanup.Tasks() {
		answer.Tasks = append(answer.Tasks, newCleanupTaskJSON(t, v.lang))
	}
	for _, r := range c.Cleanup.Runs(maxRuns) {
		answer.History = append(answer.History, newCleanupRunJSON(r, v.lang))
	}
	c.json(g, http.StatusOK, answer)
	return nil
}

// cleanupForm reads a form about one task.
func (c *console) cleanupForm(g *gin.Context) (CleanupTask, error) {
	if c.Cleanup == nil {
		return CleanupTask{}, cleanupOff()
	}
	if err := c.acceptForm(g); err != nil {
		return CleanupTask{}, err
	}
	tasks := c.Cleanup.Tasks()
	i := slices.IndexFunc(tasks, func(t CleanupTask) bool { return t.Name == g.Request.PostForm.Get("task") })
	if i < 0 {
		return CleanupTask{}, badCleanupForm()
	}
	return tasks[i], nil
}

// planAnew makes the plan of the task anew that the address names, unless it is
// young. That only reads, so it needs no form.
func (c *console) planAnew(g *gin.Context, v visit) error {
	name, given, err := v.text("plan")
	if err != nil || !given {
		return err
	}
	tasks := c.Cleanup.Tasks()
	i := slices.IndexFunc(tasks, func(t CleanupTask) bool { return t.Name == name })
	switch {
	case i < 0:
		return badCleanupForm()
	case tasks[i].Plan != nil && time.Since(tasks[i].Plan.Made) < planAge:
		return nil
	}
	ctx, cancel := context.WithTimeout(g.Request.Context(), planTimeout)
	defer cancel()
	return c.Cleanup.Replan(ctx, name)
}

// stopCleanup ends a run.
func (c *console) stopCleanup(g *gin.Context, v visit) error {
	if !c.Actions {
		return actionsOff()
	}
	task, err := c.cleanupForm(g)
	if err != nil {
		return err
	}
	who := access.Of(g.Request.Context()).Name
	if who == "" {
		who = "console"
	}
	err = c.deed(g, "cleanup-stop", task.Name, "", func() *fault {
		if err := c.Cleanup.Stop(task.Name, who); err != nil {
			return notStopped(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return seeCleanup(g, v)
}

// seeCleanup leads back to the page; relative, so that it holds below a path prefix.
func seeCleanup(g *gin.Context, v visit) error {
	g.Header("Location", v.link("cleanup", nil))
	g.Status(http.StatusSeeOther)
	return nil
}
