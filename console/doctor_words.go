package console

import (
	"net/http"

	"idemscope/internal/flow"
)

// doctorWords are the texts of the report on the set-up.
type doctorWords struct {
	Title, Lead, AsOf                     flow.Text
	Fine, Nothing, Seen, Why, Fix, Manual flow.Text
	Unsure, UnsureLead, NotChecked        flow.Text
	FineTitle, FineLead                   flow.Text
	JSON, Again                           flow.Text
}

func newDoctorWords() doctorWords {
	return doctorWords{
		Title:      flow.T("Doctor", "体检"),
		Lead:       flow.T("Is this set-up able to be idempotent at all?", "当前的配置能够保证幂等吗？"),
		AsOf:       flow.T("as of", "截至"),
		Fine:       flow.T("checks fine", "项检查正常"),
		Nothing:    flow.T("No problem found.", "未发现问题。"),
		Seen:       flow.T("Seen", "现象"),
		Why:        flow.T("Why it matters", "影响"),
		Fix:        flow.T("What to do", "处理"),
		Manual:     flow.T("Read the manual", "查看官方文档"),
		Unsure:     flow.T("Could not be told", "无法判断"),
		UnsureLead: flow.T("A store did not answer, or refused to tell. That is neither fine nor a problem.", "存储没有应答，或拒绝提供信息：既不算正常，也不算问题。"),
		NotChecked: flow.T("Not checked", "未检查"),
		FineTitle:  flow.T("What is fine", "正常的检查"),
		FineLead:   flow.T("Show the %d checks that found nothing", "显示没有发现问题的 %d 项检查"),
		JSON:       flow.T("This report as JSON", "以 JSON 查看"),
		Again:      flow.T("Examine again", "重新检查"),
	}
}

func doctorOff() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "doctor_off",
		Title:  flow.T("There is no doctor here.", "这里没有体检功能。"),
		Remedy: flow.T("Run idemscope doctor on the command line.", "请在命令行运行 idemscope doctor。"),
	}
}
