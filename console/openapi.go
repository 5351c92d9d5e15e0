package console

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"idemscope/internal/access"
	"idemscope/internal/action"
	"idemscope/internal/answer"
	"idemscope/internal/audit"
	"idemscope/internal/doctor"
	"idemscope/internal/flow"
	"idemscope/internal/verdict"
)

// apiRoute describes one address of the API.
type apiRoute struct {
	method, path string
	summary      flow.Text
	parameters   []apiParameter
	// order is the body that is sent; nil without one.
	order reflect.Type
	// answers are the bodies of each status; that of every other is an error.
	answers map[int][]reflect.Type
}

// apiParameter is one parameter, of the query unless it stands in the path.
type apiParameter struct {
	name      string
	mandatory bool
	says      flow.Text
	// oneOf are the values that it can have; nil means any.
	oneOf []string
}

func answers(t reflect.Type) map[int][]reflect.Type {
	return map[int][]reflect.Type{http.StatusOK: {t}}
}

// keyParameters name a key.
func keyParameters(mandatory bool) []apiParameter {
	return []apiParameter{
		{name: "type", mandatory: mandatory, says: flow.T("biz_type of the key", "键的业务类型")},
		{name: "id", mandatory: mandatory, says: flow.T("biz_id of the key, byte for byte, percent-encoded; it may be empty", "键的业务 ID，按字节原样并做百分号编码；可以为空")},
		{name: "flow", says: flow.T("name of the flow, where several carry the biz_type", "流程名称；多个流程包含该业务类型时需要")},
	}
}

// apiRoutes lists every address below /api/.
func apiRoutes() []apiRoute {
	after := apiParameter{name: "after", says: flow.T("mark of the page before, as its next has it", "上一页的标记，取自其 next")}
	flowName := apiParameter{name: "flow", says: flow.T("only this flow", "仅该流程")}
	outcome := reflect.TypeFor[action.ResultJSON]()
	outcomes := reflect.TypeFor[ManyResultJSON]()
	return []apiRoute{
		{"GET", "/api/v1/lookup", flow.T("The verdict on one key, with the evidence of every layer", "一个键的判定及各层证据"),
			append(keyParameters(true), apiParameter{name: "download", oneOf: []string{"1"}, says: flow.T("as a file", "作为文件下载")}), nil, answers(reflect.TypeFor[answer.JSON]())},
		{"GET", "/api/v1/search", flow.T("Everything that a text could mean", "一段文本可能指的所有键"),
			[]apiParameter{{name: "q", mandatory: true, says: flow.T("a biz_id, biz_type:biz_id, a Redis key or a JSON message", "业务 ID、业务类型:业务 ID、Redis 键或 JSON 消息")}}, nil, answers(reflect.TypeFor[answer.ResultJSON]())},
		{"GET", "/api/v1/findings", flow.T("Keys whose verdict is a problem", "判定为有问题的键"), []apiParameter{
			flowName, {name: "verdict", oneOf: texts(verdict.Codes()), says: flow.T("only this verdict", "仅该判定")}, {name: "biz_type", says: flow.T("only this biz_type", "仅该业务类型")},
			{name: "layer", oneOf: texts(findingLayers), says: flow.T("only this layer", "仅该层")}, {name: "severity", oneOf: texts(findingSeverities), says: flow.T("only this severity", "仅该级别")},
			{name: "older", says: flow.T("only those known to be older: 90s, 5m, 2h, 7d", "仅已知超过该时长的：90s、5m、2h、7d")}, {name: "sort", oneOf: texts(answer.Orders()), says: flow.T("order", "排序")},
			{name: "limit", says: flow.T("how many, 1 to %d", "数量，1 到 %d", maxFindings)}, after,
		}, nil, answers(reflect.TypeFor[answer.FindingsJSON]())},
		{"GET", "/api/v1/flows", flow.T("The operating figures of all flows, of the last hour", "所有流程最近一小时的运行指标"), nil, nil, answers(reflect.TypeFor[flowsJSON]())},
		{"GET", "/api/v1/flows/{name}", flow.T("The operating figures of one flow, with all points that are kept", "一个流程的运行指标及所保留的全部数据点"),
			[]apiParameter{{name: "name", mandatory: true, says: flow.T("name of the flow", "流程名称")}}, nil, answers(reflect.TypeFor[flowsJSON]())},
		{"GET", "/api/v1/cleanup", flow.T("The cleanup of old records: tasks, plans, runs of the past", "旧记录的清理：任务、计划与历史"), nil, nil, answers(reflect.TypeFor[CleanupJSON]())},
		{"GET", "/api/v1/trace", flow.T("The traces of deliveries", "投递跟踪"), nil, nil, answers(reflect.TypeFor[TracesJSON]())},
		{"GET", "/api/v1/doctor", flow.T("What is unsafe in the set-up", "配置中的隐患"), nil, nil, answers(reflect.TypeFor[doctor.JSON]())},
		{"GET", "/api/v1/audit", flow.T("Every attempt to change something, the latest first", "所有更改操作，最近的在前"), append(keyParameters(false),
			apiParameter{name: "who", says: flow.T("only this person's", "仅该人的")}, apiParameter{name: "action", says: flow.T("only this action", "仅该操作")},
			apiParameter{name: "outcome", says: flow.T("only this outcome", "仅该结果")}, apiParameter{name: "limit", says: flow.T("how many, 1 to %d", "数量，1 到 %d", audit.MaxEntries)}, after,
		), nil, answers(reflect.TypeFor[AuditJSON]())},
		{"POST", "/api/v1/actions/{kind}", flow.T("Says what an action would do to one key; with execute, does it", "说明操作对一个键的影响；带 execute 时执行"),
			[]apiParameter{{name: "kind", mandatory: true, oneOf: texts(action.Kinds), says: flow.T("the action", "操作")}}, reflect.TypeFor[actionOrder](), map[int][]reflect.Type{
				200: {reflect.TypeFor[action.PrecheckJSON](), outcome}, 400: {outcome}, 403: {outcome}, 409: {outcome}, 503: {outcome},
			}},
		{"POST", "/api/v1/actions", flow.T("The same for up to %d keys, all but replay; 207: they came to different ends", "对最多 %d 个键执行同一操作（replay 除外）；207 表示结果各不相同", maxKeys),
			nil, reflect.TypeFor[manyOrder](), map[int][]reflect.Type{
				200: {reflect.TypeFor[ManyPrecheckJSON](), outcomes}, 207: {outcomes}, 400: {outcomes}, 403: {outcomes}, 409: {outcomes}, 503: {outcomes},
			}},
		{"GET", "/api/v1/openapi.json", flow.T("This description", "本描述"), nil, nil, map[int][]reflect.Type{http.StatusOK: nil}},
	}
}

// texts are the values of a type of strings.
func texts[T ~string](values []T) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// describeAPI writes the description of the API in every language.
func describeAPI(version string) (map[flow.Language][]byte, error) {
	all := map[flow.Language][]byte{}
	for _, lang := range flow.Languages {
		text, err := json.MarshalIndent(newDescription(version, lang), "", "  ")
		if err != nil {
			return nil, err
		}
		all[lang] = append(text, '\n')
	}
	return all, nil
}

func newDescription(version string, lang flow.Language) map[string]any {
	s := &schemas{named: map[string]any{}, known: map[reflect.Type][]string{
		reflect.TypeFor[action.Kind]():  texts(action.Kinds),
		reflect.TypeFor[verdict.Code](): texts(verdict.Codes()),
	}}
	paths := map[string]any{}
	for _, r := range apiRoutes() {
		paths[r.path] = map[string]any{strings.ToLower(r.method): r.describe(s, lang)}
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "idemscope", "version": version},
		// Relative to the address of this description: it may stand below any path.
		"servers":    []any{map[string]any{"url": "../.."}},
		"paths":      paths,
		"components": map[string]any{"schemas": s.named},
	}
}

func (r apiRoute) describe(s *schemas, lang flow.Language) map[string]any {
	parameters := []any{map[string]any{
		"name": "lang", "in": "query", "schema": map[string]any{"type": "string", "enum": texts(flow.Languages)},
		"description": flow.T("language of the sentences; without it, that of Accept-Language", "句子的语言；缺省时取 Accept-Language").In(lang),
	}}
	for _, p := range r.parameters {
		schema := map[string]any{"type": "string"}
		if p.oneOf != nil {
			schema["enum"] = p.oneOf
		}
		in := "query"
		if strings.Contains(r.path, "{"+p.name+"}") {
			in = "path"
		}
		parameters = append(parameters, map[string]any{"name": p.name, "in": in, "required": p.mandatory, "description": p.says.In(lang), "schema": schema})
	}
	failed := reflect.TypeFor[ErrorJSON]()
	responses := map[string]any{"default": body(s, flow.T("an error", "错误").In(lang), failed)}
	for status, types := range r.answers {
		if status >= 400 {
			types = append(types, failed)
		}
		responses[strconv.Itoa(status)] = body(s, http.StatusText(status), types...)
	}
	operation := map[string]any{"summary": r.summary.In(lang), "parameters": parameters, "responses": responses}
	if r.order != nil {
		operation["requestBody"] = body(s, "", r.order)
		operation["parameters"] = append(parameters, map[string]any{
			"name": access.FormHeader, "in": "header", "required": false, "schema": map[string]any{"type": "string"},
			"description": flow.T("token of a form (form_token of a page); needed by who is signed in with a cookie", "表单令牌（页面中的 form_token）；使用 Cookie 登录时需要").In(lang),
		})
	}
	return operation
}

// body is one of several types, as JSON; any object without one.
func body(s *schemas, says string, types ...reflect.Type) map[string]any {
	schema := map[string]any{"type": "object"}
	if len(types) == 1 {
		schema = s.of(types[0])
	} else if len(types) > 1 {
		var choices []any
		for _, t := range types {
			choices = append(choices, s.of(t))
		}
		schema = map[string]any{"anyOf": choices}
	}
	b := map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
	if says != "" {
		b["description"] = says
	}
	return b
}

func (c *console) openAPI(g *gin.Context, v visit) error {
	g.Data(http.StatusOK, "application/json; charset=utf-8", c.described[v.lang])
	return nil
}
