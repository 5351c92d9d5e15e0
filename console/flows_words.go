package console

import (
	"net/http"

	"idemscope/internal/flow"
)

// flowWords are the texts of the pages of flows.
type flowWords struct {
	Title, Lead, AsOf, JSON, Again, Unknown, Max, Latest, Ago, NowMark  flow.Text
	Rule, NoRule, Remarks, NoRemarks, NotExamined, Seen, Fix, AllChecks flow.Text
	Undeclared, UndeclaredLead, UndeclaredFix, Ledger, CountersOnly     flow.Text
	Open, Grafana, Findings, AllFlows, LockTitle, Queues, Types         flow.Text
	TypesLead, MoreTypes, BizType, Conflicts, Dedup, Retries, P99       flow.Text
	Stale, Queue, Ready, Unacked, Delayed, Dead, Consumers, StaleAfter  flow.Text
}

func newFlowWords() flowWords {
	return flowWords{
		Title:          flow.T("Flows", "流程"),
		Lead:           flow.T("The operating figures of each flow, kept in memory for six hours.", "每个流程的运行指标，在内存中保留六小时。"),
		AsOf:           flow.T("as of", "截至"),
		JSON:           flow.T("These figures as JSON", "以 JSON 查看"),
		Again:          flow.T("Look again", "刷新"),
		Unknown:        flow.T("not known", "未知"),
		Max:            flow.T("highest", "最高"),
		Latest:         flow.T("latest", "最新"),
		Ago:            flow.T("%v ago", "%v前"),
		NowMark:        flow.T("now", "现在"),
		Rule:           flow.T("How biz_type and biz_id are made", "业务类型和业务 ID 的生成规则"),
		NoRule:         flow.T("Not declared. Write it under flows.%s.key_rule.", "未声明。请写在 flows.%s.key_rule 中。"),
		Remarks:        flow.T("Doctor's remarks", "体检意见"),
		NoRemarks:      flow.T("None on this flow, its ledger, Redis and queues.", "该流程及其记录表、Redis、队列没有问题。"),
		NotExamined:    flow.T("The set-up was not examined.", "尚未体检。"),
		Seen:           flow.T("Seen", "现象"),
		Fix:            flow.T("What to do", "处理"),
		AllChecks:      flow.T("The whole report", "完整报告"),
		Undeclared:     flow.T("Undeclared biz_types", "未声明的业务类型"),
		UndeclaredLead: flow.T("Seen, and no flow takes them: nobody watches their locks and stale records.", "已出现但不属于任何流程：其锁和超时记录无人关注。"),
		UndeclaredFix:  flow.T("Name each under biz_types of a flow, or let a flow take the rest of its ledger with biz_types: [\"*\"].", "请写入某个流程的 biz_types，或用 biz_types: [\"*\"] 让一个流程接收其余类型。"),
		Ledger:         flow.T("Ledger", "记录表"),
		CountersOnly:   flow.T("no record; consumers count it", "没有记录，仅消费者计数"),
		Open:           flow.T("in processing", "处理中"),
		Grafana:        flow.T("In Grafana", "在 Grafana 中查看"),
		Findings:       flow.T("Findings of this flow", "该流程的问题"),
		AllFlows:       flow.T("All flows", "所有流程"),
		LockTitle:      flow.T("Lock TTL against P99", "锁 TTL 与 P99"),
		Queues:         flow.T("Queues", "队列"),
		Types:          flow.T("By biz_type", "按业务类型"),
		TypesLead:      flow.T("the last hour", "最近一小时"),
		MoreTypes:      flow.T("%d more are in the JSON.", "另有 %d 个见 JSON。"),
		BizType:        flow.T("biz_type", "业务类型"),
		Conflicts:      flow.T("Lock conflicts", "锁冲突"),
		Dedup:          flow.T("Dedup hits", "去重命中"),
		Retries:        flow.T("Retries", "重试"),
		P99:            flow.T("P99", "耗时 P99"),
		Stale:          flow.T("Stale", "超时记录"),
		Queue:          flow.T("queue", "队列"),
		Ready:          flow.T("ready", "就绪"),
		Unacked:        flow.T("unacked", "未确认"),
		Delayed:        flow.T("delayed", "延迟"),
		Dead:           flow.T("dead", "死信"),
		Consumers:      flow.T("consumers", "消费者"),
		StaleAfter:     flow.T("stale after", "超时判定"),
	}
}

// roleText words what a queue is for.
func roleText(role string) flow.Text {
	switch role {
	case "retry":
		return flow.T("retry", "重试")
	case "dead_letter":
		return flow.T("dead letter", "死信")
	}
	return flow.T("work", "业务")
}

func figuresOff() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "figures_off",
		Title:  flow.T("No figures are kept here.", "这里没有保存指标。"),
		Remedy: flow.T("Run idemscope serve: it keeps them.", "请运行 idemscope serve，由它保存指标。"),
	}
}
