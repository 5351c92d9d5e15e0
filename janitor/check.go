package janitor

import (
	"slices"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// Result is the answer to a check.
type Result string

// The results. Only Refuses keeps a task from running.
const (
	Passes  Result = "passed"
	Refuses Result = "refused"
	// Allowed: it would refuse, but the configuration or the command allows it by name.
	Allowed Result = "allowed"
	// NotKnown: there is no answer, and the task may run without.
	NotKnown Result = "not_known"
	// Off: it does not apply, or the configuration does not want it.
	Off Result = "off"
)

// Word is the result for people.
func (r Result) Word() flow.Text {
	switch r {
	case Passes:
		return flow.T("ok", "通过")
	case Refuses:
		return flow.T("REFUSED", "拒绝执行")
	case Allowed:
		return flow.T("allowed", "已放行")
	case NotKnown:
		return flow.T("not known", "未知")
	}
	return flow.T("off", "未启用")
}

// Check is one question that a plan asks before a run, with its answer.
type Check struct {
	// Code is that of the refusal that it may lead to; table for all that a table
	// has to be like.
	Code   string
	Result Result
	// Table is empty when the whole task is meant.
	Table string
	Text  flow.Text
}

// tell adds a check with its result; one that refuses is a refusal as well.
func (p *Plan) tell(code, table string, result Result, text flow.Text) {
	p.Checks = append(p.Checks, Check{code, result, table, text})
	if result == Refuses {
		p.Refusals = append(p.Refusals, Refusal{code, table, text})
	}
}

// asked is a check of a whole task: what to say when nothing speaks against it, and what does.
type asked struct {
	code  string
	fine  flow.Text
	found []Refusal
}

// ask checks what the server says about itself, and the configuration.
func (t *Task) ask(s ledger.SweepState) []asked {
	binlog := flow.T("the server keeps no binary log", "服务器没有开启 binlog")
	if s.Binlog != "" {
		binlog = flow.T("the binary log suits the action (%s)", "binlog 格式适合该操作（%s）", s.Binlog)
	}
	return []asked{
		t.askAct(),
		{"retention", flow.T("retain is %s, above every TTL and timeout of the flows", "retain 为 %s，大于各流程的所有 TTL 与超时", flow.Span(t.Retain)), t.withRetention()},
		{"read_only", flow.T("the server takes writes", "服务器可写"), t.onReadOnly(s)},
		{"replica", flow.T("the server is not configured as a replica", "配置中该服务器不是从库"), t.onReplica(s)},
		{"clock_skew", flow.T("the clocks of the server and of this machine differ by %s", "服务器与本机的时钟相差 %s", flow.Span(s.Skew.Abs())), t.withSkew(s)},
		{"unsafe_binlog", binlog, t.withBinlog(s)},
	}
}

func (t *Task) askAct() asked {
	return asked{"act_missing", flow.T("there is a user that may delete (mysql.%s.act)", "已配置可执行删除的用户（mysql.%s.act）", t.server()), t.withoutAct()}
}

// answer adds the answer to a check.
func (p *Plan) answer(a asked) {
	if len(a.found) == 0 {
		p.tell(a.code, "", Passes, a.fine)
	}
	for _, r := range a.found {
		p.tell(r.Code, r.Table, Refuses, r.Text)
	}
}

// likeTable adds what a table is like.
func (p *Plan) likeTable(table *ledger.SweepTable, obstacles []ledger.Obstacle) {
	for _, o := range obstacles {
		p.tell(o.Code, table.Name(), Refuses, flow.T("%s: %s", "%s：%s", table.Name(), o.Text))
	}
	if len(obstacles) > 0 {
		return
	}
	p.tell("table", table.Name(), Passes, flow.T("%s: primary key, status, times and engine are fit; no foreign key and no trigger is in the way", "%s：主键、状态、时间列与存储引擎均符合要求；没有外键或触发器妨碍", table.Name()))
	if table.Archive() != "" {
		p.tell("table", table.Name(), Passes, flow.T("%s can take its rows", "%s 可以存放其行", table.Archive()))
	}
}

// likeBefore compares a table with the hash that the configuration has.
func (p *Plan) likeBefore(t *Task, table, is string) {
	switch t.ExpectSchema {
	case "":
		p.tell("schema_changed", table, Off, flow.T(`%[1]s: to refuse another table, write expect_schema: "%[2]s"`, `%[1]s：若要在表结构变化时拒绝执行，请写 expect_schema: "%[2]s"`, table, is))
	case is:
		p.tell("schema_changed", table, Passes, flow.T("%s is the table of expect_schema (%s)", "%s 与 expect_schema 一致（%s）", table, is))
	default:
		p.tell("schema_changed", table, Refuses, flow.T(`%[1]s is not the table of the configuration: its hash is %[2]s, expected is %[3]s; compare its columns, keys and engine, and if they are meant, write expect_schema: "%[2]s"`,
			`%[1]s 不是配置所指的表：其哈希为 %[2]s，期望为 %[3]s；请核对列、索引与存储引擎，若变更属实，请写 expect_schema: "%[2]s"`, table, is, t.ExpectSchema))
	}
}

const (
	// growthRuns is how many of the last runs a plan is compared with.
	growthRuns = 10
	// growthFrom is up to how many rows every run is plausible.
	growthFrom = 100_000
)

// plausible compares how many rows of a table are to go with the last runs.
func (p *Plan) plausible(t *Task, table TablePlan, past []Entry) {
	const code = "implausible"
	if t.MaxGrowth <= 0 {
		p.tell(code, table.Table, Off, flow.T("%s: how many rows go is not compared with the last runs (max_growth: 0)", "%s：不与最近的运行比较行数（max_growth: 0）", table.Table))
		return
	}
	largest, runs := largestOf(past, t.Name, table.Table)
	switch {
	case runs == 0:
		p.tell(code, table.Table, NotKnown, flow.T("%s: no run has let rows go yet that this one could be compared with", "%s：还没有移除过记录的运行可供比较", table.Table))
	case table.Candidates <= growthFrom || float64(table.Candidates) <= float64(largest)*float64(t.MaxGrowth):
		p.tell(code, table.Table, Passes, flow.T("%[1]s: %[2]d rows go; the largest of the last %[3]d runs was of %[4]d", "%[1]s：将移除 %[2]d 行；最近 %[3]d 次运行中最大为 %[4]d 行", table.Table, table.Candidates, runs, largest))
	default:
		result, text := Refuses, flow.T("%[1]s: %[2]d rows would go, more than %[5]d times the %[4]d of the largest of the last %[3]d runs; look at the plan, the mapping of status and times and the clock; if it is meant, run it once with idemscope janitor run --task %[6]s --execute --accept-size, or raise max_growth",
			"%[1]s：将移除 %[2]d 行，超过最近 %[3]d 次运行中最大值 %[4]d 行的 %[5]d 倍；请检查计划、状态与时间列的映射以及时钟；若属实，请执行一次 idemscope janitor run --task %[6]s --execute --accept-size，或调高 max_growth",
			table.Table, table.Candidates, runs, largest, t.MaxGrowth, t.Name)
		if p.accepted {
			result, text = Allowed, flow.T("%[1]s: %[2]d rows go; the largest of the last %[3]d runs was of %[4]d (--accept-size)", "%[1]s：将移除 %[2]d 行；最近 %[3]d 次运行中最大为 %[4]d 行（--accept-size）", table.Table, table.Candidates, runs, largest)
		}
		p.tell(code, table.Table, result, text)
	}
}

// finished are the ends of runs that tell how large a run is.
var finished = []Ended{Done, OutOfTime, OutOfRows, WindowClosed}

// largestOf is how many rows the largest of the last runs took out of a table, or
// was to: a window may be too short for all of them. Runs that took none tell
// nothing. runs is how many there are, at most growthRuns.
func largestOf(newest []Entry, task, table string) (largest int64, runs int) {
	for _, e := range newest {
		if e.Task != task || e.Table != table || e.Rows == 0 || !slices.Contains(finished, e.End) {
			continue
		}
		largest = max(largest, e.Rows, e.Planned)
		if runs++; runs == growthRuns {
			break
		}
	}
	return largest, runs
}

// write prints the checks that do not refuse: refusals have lines of their own.
func (c Check) write(out *paper) {
	if c.Result != Refuses {
		out.line(1, "%s [%s] %s", "%s [%s] %s", c.Result.Word(), c.Code, c.Text)
	}
}
