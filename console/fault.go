package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// fault is why a request has no answer, worded for the person who asked. Its
// Code is stable: it is an API value.
type fault struct {
	Status int
	Code   string
	// Title says what is wrong, Remedy what to do about it.
	Title, Remedy flow.Text
	// Choices are what could have been meant.
	Choices []choice
	cause   error
}

// choice is one thing that could have been meant.
type choice struct {
	// Label is a name, shown as it is.
	Label string
	URL   string
}

// Error is for logs.
func (f *fault) Error() string { return f.Code }

// message words the fault as one text for API users.
func (f *fault) message(lang flow.Language) string {
	parts := []string{f.Title.In(lang), f.Remedy.In(lang)}
	for _, c := range f.Choices {
		parts = append(parts, c.Label)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// ErrorJSON is the answer of the API where it has no other.
type ErrorJSON struct {
	Error FaultJSON `json:"error"`
}

// FaultJSON is why. Codes are stable.
type FaultJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func notFound() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "not_found",
		Title:  flow.T("There is no such page.", "没有这个页面。"),
		Remedy: flow.T("Search for a key, or go back to the start.", "请搜索一个键，或返回首页。"),
	}
}

func methodNotAllowed() *fault {
	return &fault{
		Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
		Title:  flow.T("This page can only be read.", "该页面只能读取。"),
		Remedy: flow.T("Use GET or HEAD.", "请使用 GET 或 HEAD。"),
	}
}

func malformedQuery() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "malformed_query",
		Title: flow.T("The address cannot be read: it holds a broken percent escape or a bare semicolon.",
			"无法解析地址：其中有错误的百分号转义或未转义的分号。"),
		Remedy: flow.Text{
			EN: "Write every special byte as %XX: a percent sign as %25, a semicolon as %3B, a plus sign as %2B. The search box does that by itself.",
			ZH: "请把每个特殊字节写成 %XX：百分号写作 %25，分号写作 %3B，加号写作 %2B。用搜索框则会自动处理。",
		},
	}
}

func repeatedParameter(name string) *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "repeated_parameter",
		Title:  flow.T("The parameter %s is given more than once, and either could be meant.", "参数 %s 出现了多次，无法确定以哪一个为准。", name),
		Remedy: flow.Text{EN: "Give it once; an ampersand inside a value is written %26.", ZH: "请只写一次；值中的 & 应写作 %26。"},
	}
}

func missingParameter(name string) *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "missing_" + name,
		Title: flow.T("The parameter %s is missing.", "缺少参数 %s。", name),
		Remedy: flow.T("A key has both: type=BIZ_TYPE and id=BIZ_ID (an empty id is written id=). With an id alone, search for it.",
			"一个键由两部分组成：type=业务类型 和 id=业务 ID（空 ID 写作 id=）。只有 ID 时请直接搜索。"),
	}
}

func emptyQuery() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "empty_query",
		Title: flow.T("There is nothing to look for.", "没有要查找的内容。"),
		Remedy: flow.T("Give a biz_id, biz_type:biz_id, a Redis key or a JSON message.",
			"请输入业务 ID、业务类型:业务 ID、Redis 键或 JSON 消息。"),
	}
}

func noIDInMessage() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "no_id_in_message",
		Title: flow.T("This JSON message holds no biz_id that a flow knows.", "这条 JSON 消息中没有流程认识的业务 ID。"),
		Remedy: flow.T("Declare the field in the flow's queue (flows.*.queue.id.json), or search for the biz_id itself.",
			"请在流程的队列中声明该字段（flows.*.queue.id.json），或直接搜索业务 ID。"),
	}
}

func busy() *fault {
	return &fault{
		Status: http.StatusServiceUnavailable, Code: "busy",
		Title:  flow.T("Many people are looking up keys at this moment.", "此刻有很多人在查询。"),
		Remedy: flow.T("To spare the stores, only so many look-ups run at once. Load this page again in a moment.", "为保护存储，同时进行的查询数量有限。请稍后重新加载本页。"),
	}
}

func severalFlows(v visit, places []flow.Place) *fault {
	f := &fault{
		Status: http.StatusMultipleChoices, Code: "several_flows",
		Title:  flow.T("Several flows carry this biz_type, and each keeps its own records.", "有多个流程包含该业务类型，它们的记录各自独立。"),
		Remedy: flow.T("Choose one with flow=NAME.", "请用 flow=名称 选择其中一个。"),
	}
	for _, p := range places {
		f.Choices = append(f.Choices, choice{Label: p.Flow, URL: v.link("key", keyValues(p.Key, p.Flow))})
	}
	return f
}

// unknownKey words that no flow carries the key, and offers those that are
// known with the same id.
func unknownKey(v visit, e answer.NoFlow) *fault {
	f := &fault{
		Status: http.StatusNotFound, Code: "unknown_biz_type",
		Title: flow.T("No flow names the biz_type %s.", "没有流程包含业务类型 %s。", shown(e.BizType)),
		Remedy: flow.T("Check the spelling, or add it to flows.*.biz_types of the configuration. Known biz_types:",
			"请核对写法，或把它加入配置的 flows.*.biz_types。已知的业务类型："),
	}
	if e.Flow != "" {
		f.Code = "unknown_flow"
		f.Title = flow.T("No flow named %s carries the biz_type %s.", "没有名为 %s 的流程包含业务类型 %s。", shown(e.Flow), shown(e.BizType))
	}
	for _, bizType := range e.Known {
		values := url.Values{"type": {bizType}, "id": {v.values.Get("id")}}
		f.Choices = append(f.Choices, choice{Label: flow.Visible(bizType), URL: v.link("key", values)})
	}
	return f
}

// faultOf words any error. What is not known is a fault of the console itself.
func faultOf(v visit, err error) *fault {
	var known *fault
	var noFlow answer.NoFlow
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errBusy):
		return busy()
	case errors.As(err, &noFlow):
		return unknownKey(v, noFlow)
	case errors.Is(err, flow.ErrEmptyQuery):
		return emptyQuery()
	case errors.Is(err, flow.ErrMessage):
		return noIDInMessage()
	}
	return &fault{
		Status: http.StatusInternalServerError, Code: "internal", cause: err,
		Title:  flow.T("idemscope failed to answer.", "idemscope 处理失败。"),
		Remedy: flow.T("Its log says why.", "原因见其日志。"),
	}
}

// fail answers with the error, as a page or as JSON.
func (c *console) fail(g *gin.Context, v visit, err error) {
	f := faultOf(v, err)
	if f.cause != nil && g.Request.Context().Err() == nil {
		c.Logger.Error("console: request failed", "path", g.Request.URL.Path, "err", f.cause)
	}
	if f.Status == http.StatusServiceUnavailable {
		g.Header("Retry-After", "1")
	}
	if v.api {
		c.json(g, f.Status, ErrorJSON{FaultJSON{Code: f.Code, Message: f.message(v.lang)}})
		return
	}
	c.fault(g, v, f)
}
