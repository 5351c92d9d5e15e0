package console

import (
	"net/http"

	"idemscope/internal/action"
	"idemscope/internal/flow"
)

// manyWords are the texts around an action on many keys.
type manyWords struct {
	Title, Lead, Choose, Key, Does, Take, Over, Refused, Nothing, None, Seen flow.Text
	Counted, TypeNumber, TypeNumberHint, Do, Back, NoReason, WrongNumber     flow.Text
	Outcome, Why, Attempt, Also, Again, Statement                            flow.Text
}

func newManyWords() manyWords {
	return manyWords{
		Title:          flow.T("Preview for the selected keys", "对所选键的操作预览"),
		Lead:           flow.T("nothing is changed yet; each key is checked once more at the moment of writing, and has its own entry in the audit file", "尚未做任何更改；执行时每个键会再次检查，并各有一条审计记录"),
		Choose:         flow.T("Action", "操作"),
		Key:            flow.T("Key", "键"),
		Does:           flow.T("What it would do", "将会做什么"),
		Take:           flow.T("Do it to", "执行于"),
		Over:           flow.T("%d more keys were selected. One order takes %d: do the others after these.", "另有 %d 个选中的键未列出。一次最多 %d 个：请在完成这些之后再处理其余的。"),
		Refused:        flow.T("refused", "已拒绝"),
		Nothing:        flow.T("nothing to do", "无需操作"),
		None:           flow.T("None of these keys can be acted on now.", "目前这些键都不能执行该操作。"),
		Seen:           flow.T("as of", "截至"),
		Counted:        flow.T("%d of %d can be acted on now.", "%[2]d 个中有 %[1]d 个目前可以执行。"),
		TypeNumber:     flow.T("Type how many keys are ticked", "请输入勾选的键的数量"),
		TypeNumberHint: flow.T("what this lets run cannot be called back", "由此触发的执行无法撤回"),
		Do:             flow.T("Do it to the ticked keys", "对勾选的键执行"),
		Back:           flow.T("Back to the findings", "返回问题列表"),
		NoReason:       flow.T("A reason is needed; nothing was changed.", "需要填写理由；未做任何更改。"),
		WrongNumber:    flow.T("The number that was typed is not that of the ticked keys (%d); nothing was changed.", "输入的数量与勾选的键数（%d）不符；未做任何更改。"),
		Outcome:        flow.T("Outcome", "结果"),
		Why:            flow.T("Why", "原因"),
		Attempt:        flow.T("attempt", "操作编号"),
		Also:           flow.T("also:", "另有："),
		Statement:      flow.T("the statement", "语句"),
		Again:          flow.T("Preview what was not done again", "重新预览未完成的键"),
	}
}

func oneByOne(kind action.Kind) *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "one_by_one",
		Title:  flow.T("The action %s is done to one key at a time.", "操作 %s 一次只能处理一个键。", string(kind)),
		Remedy: flow.T("Open it on the page of the key.", "请在该键的页面上打开。"),
	}
}

func nothingSelected() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "nothing_selected",
		Title:  flow.T("No key is selected.", "没有选中任何键。"),
		Remedy: flow.T("Tick keys in the list of findings; with the API, name them in keys.", "请在问题列表中勾选；使用 API 时请在 keys 中给出。"),
	}
}

func tooManyKeys(n int) *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "too_many_keys",
		Title:  flow.T("The order names %d keys, and nothing was changed.", "该请求包含 %d 个键，未做任何更改。", n),
		Remedy: flow.T("One order takes %d: send several.", "一次最多 %d 个：请分多次发送。", maxKeys),
	}
}

func keyTwice(k flow.Key) *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "key_twice",
		Title:  flow.T("The key %s stands in the order twice, and nothing was changed.", "键 %s 在请求中出现了两次，未做任何更改。", shown(k.BizType+":"+k.BizID)),
		Remedy: flow.T("Name each key once.", "每个键请只给出一次。"),
	}
}

func badPlace() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_place",
		Title:  flow.T("A selected key cannot be read.", "无法读取某个所选的键。"),
		Remedy: flow.T("Select keys in the list of findings, and send that form.", "请在问题列表中勾选并提交表单。"),
	}
}
