package console

import (
	"net/http"

	"idemscope/internal/flow"
)

// traceWords are the texts of the page of traces.
type traceWords struct {
	Title, Lead, On, Off, Ends, Latest, Ran, Never, Before, Limits flow.Text
	Minutes, Agreed, Arm, Disarm, NotAllowed                       flow.Text
	Deliveries, Lossy, Flow, Key, Count, Redelivered, NoneSoFar    flow.Text
	JSON, Again                                                    flow.Text
}

func newTraceWords() traceWords {
	return traceWords{
		Title:       flow.T("Armed trace", "临时追踪"),
		Lead:        flow.T("For some minutes, the broker reports every delivery of its vhost; deliveries are counted per key.", "在几分钟内，由 Broker 上报其 vhost 的每次投递，并按键统计投递次数。"),
		On:          flow.T("Tracing is on", "追踪已开启"),
		Off:         flow.T("Tracing is off", "追踪未开启"),
		Ends:        flow.T("ends in", "剩余时间"),
		Latest:      flow.T("The latest trace", "最近一次追踪"),
		Ran:         flow.T("%v deliveries, %v of them without a key that a flow knows.", "共 %v 次投递，其中 %v 次没有流程认识的键。"),
		Never:       flow.T("No trace was armed since this program started.", "本程序启动以来没有开启过追踪。"),
		Before:      flow.T("Before you arm it", "开启之前请了解"),
		Limits:      flow.T("What it does not tell", "它看不到什么"),
		Minutes:     flow.T("%v min", "%v 分钟"),
		Agreed:      flow.T("I accept this cost for the whole vhost", "我接受这对整个 vhost 的代价"),
		Arm:         flow.T("Turn tracing on", "开启追踪"),
		Disarm:      flow.T("Turn tracing off now", "立即关闭追踪"),
		NotAllowed:  flow.T("It cannot be armed from here: the configuration does not set console.actions: true. From a shell: idemscope rabbitmq trace", "无法在此开启：配置中没有设置 console.actions: true。可在命令行执行：idemscope rabbitmq trace"),
		Deliveries:  flow.T("Most deliveries", "投递次数最多"),
		Lossy:       flow.T("Copies came faster than they could be taken: the counts are too low.", "副本到达过快，来不及读取：计数偏低。"),
		Flow:        flow.T("Flow", "流程"),
		Key:         flow.T("Key", "键"),
		Count:       flow.T("Deliveries", "投递"),
		Redelivered: flow.T("Redelivered", "重投"),
		NoneSoFar:   flow.T("No delivery of a known key so far.", "尚未看到已知键的投递。"),
		JSON:        flow.T("This page as JSON", "以 JSON 查看"),
		Again:       flow.T("Look again", "刷新"),
	}
}

func tracesOff() *fault {
	return &fault{
		Status: http.StatusNotFound, Code: "traces_off",
		Title:  flow.T("No broker can be traced.", "没有可以追踪的 Broker。"),
		Remedy: flow.T("Give a broker of the configuration a section trace.", "请在配置中为某个 Broker 添加 trace 一节。"),
	}
}

func actionsOff() *fault {
	return &fault{
		Status: http.StatusForbidden, Code: "actions_off",
		Title:  flow.T("Nothing can be changed from here.", "不能在此做任何更改。"),
		Remedy: flow.T("Set console.actions: true in the configuration, and let only operators reach the console.", "请在配置中设置 console.actions: true，并且只让运维人员访问控制台。"),
	}
}

func otherSite() *fault {
	return &fault{
		Status: http.StatusForbidden, Code: "other_site",
		Title:  flow.T("A page of another site may not change anything here.", "其他站点的页面不能在此做更改。"),
		Remedy: flow.T("Open the page here and use its button.", "请打开本站页面，使用页面上的按钮。"),
	}
}

func badForm() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_form",
		Title:  flow.T("The form cannot be read.", "无法读取表单。"),
		Remedy: flow.T("Open the page anew and use its button. A form that is much too long is not read at all.", "请重新打开页面并使用其中的按钮。过长的表单不会被读取。"),
	}
}

func badTraceForm() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_form",
		Title:  flow.T("The form cannot be read.", "无法读取表单。"),
		Remedy: flow.T("Give broker, do (arm or disarm), and to arm: minutes (1 to 60) and agreed=yes.", "请给出 broker、do（arm 或 disarm）；开启时还需 minutes（1 到 60）和 agreed=yes。"),
	}
}

func notAgreed() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "not_agreed",
		Title:  flow.T("Tracing was not turned on: its cost was not accepted.", "没有开启追踪：未接受其代价。"),
		Remedy: flow.T("Go back and tick the box beside the cost.", "请返回并勾选代价旁的选项。"),
	}
}

func notArmed(reason flow.Text) *fault {
	return &fault{
		Status: http.StatusConflict, Code: "not_armed",
		Title:  flow.T("Tracing was not turned on.", "没有开启追踪。"),
		Remedy: reason,
	}
}
