package console

import (
	"net/http"

	"idemscope/internal/action"
	"idemscope/internal/flow"
)

// actionWords are the texts around actions.
type actionWords struct {
	Title, Lead, Refused, Prepare                               flow.Text
	Effects, Warnings, NotAllowed, NothingToDo, NotOperator     flow.Text
	Reason, ReasonHint, TypeID, TypeIDHint, Do, Cancel, WrongID flow.Text
	Before, After, Attempt, Also, NowIs, ToKey, Again, Seen     flow.Text
}

func newActionWords() actionWords {
	return actionWords{
		Title:       flow.T("Actions", "操作"),
		Lead:        flow.T("each is checked once more at the moment of writing, and kept in the audit file", "执行时会再次检查，并记入审计文件"),
		Refused:     flow.T("not now:", "目前不可："),
		Prepare:     flow.T("Prepare", "准备"),
		Effects:     flow.T("What it does to each layer", "对各层的影响"),
		Warnings:    flow.T("What to know before", "执行之前请了解"),
		NotAllowed:  flow.T("It is refused", "已拒绝"),
		NothingToDo: flow.T("There is nothing to do", "无需操作"),
		NotOperator: flow.T("You may look, but not act: that takes the role operator.", "你可以查看，但不能操作：需要 operator 角色。"),
		Reason:      flow.T("Reason", "理由"),
		ReasonHint:  flow.T("kept in the audit file, with your name", "与你的名字一起记入审计文件"),
		TypeID:      flow.T("Type the biz_id once more", "请再次输入业务 ID"),
		TypeIDHint:  flow.T("what this lets run cannot be called back", "由此触发的执行无法撤回"),
		Do:          flow.T("Do it: ", "执行："),
		Cancel:      flow.T("Back to the key", "返回该键"),
		WrongID:     flow.T("The id that was typed is not that of this key; nothing was changed.", "输入的 ID 与该键不符；未做任何更改。"),
		Before:      flow.T("Before", "之前"),
		After:       flow.T("After", "之后"),
		Attempt:     flow.T("Attempt", "操作编号"),
		Also:        flow.T("Also", "另有"),
		NowIs:       flow.T("The key now", "该键现在"),
		ToKey:       flow.T("Look at the key", "查看该键"),
		Again:       flow.T("Prepare it again", "重新准备"),
		Seen:        flow.T("as of", "截至"),
	}
}

func noSuchAction(word string) *fault {
	f := &fault{
		Status: http.StatusNotFound, Code: "no_such_action",
		Title:  flow.T("There is no action %s.", "没有操作 %s。", shown(word)),
		Remedy: flow.T("Choose one on the page of a key.", "请在键的页面上选择。"),
	}
	for _, k := range action.Kinds {
		f.Remedy = flow.T("%v %s", "%v %s", f.Remedy, string(k))
	}
	return f
}

func badTicket() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_ticket",
		Title:  flow.T("The order does not say what was seen.", "该请求没有说明所见的状态。"),
		Remedy: flow.T("Open the action on the page of the key, and send that form; with the API, pass the ticket of a precheck of the same action and key.", "请在键的页面上打开该操作并提交表单；使用 API 时，请传入同一操作、同一键的预检 ticket。"),
	}
}

func badOrder() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_order",
		Title:  flow.T("The order cannot be read.", "无法读取该请求。"),
		Remedy: flow.T("Send application/json: {type, id, flow, reason, ticket, execute}, or of many keys {action, keys: [{type, id, flow, ticket}], reason, execute}; ids that are not UTF-8 as type_hex and id_hex.", "请发送 application/json：{type, id, flow, reason, ticket, execute}，多个键用 {action, keys: [{type, id, flow, ticket}], reason, execute}；非 UTF-8 的 ID 用 type_hex 和 id_hex。"),
	}
}
