package console

import (
	"net/http"

	"idemscope/internal/flow"
)

// keyWords are the texts of the page of a key beside those that all pages share.
type keyWords struct {
	Strip, QueuesName, LockName, MarkerName, RecordName flow.Text
	NoQueue, NoLock, NoMarker                           flow.Text
	Pending, WaitAll                                    flow.Text
	Path, PathLead                                      flow.Text
	Near, NearLead, NearRedis, NearRows                 flow.Text
	Idle, Now                                           flow.Text
	Report, ReportLead, ReportFile, JSONFile            flow.Text
	RefreshOn, Refreshing, Pause, Resume, Paused, Ended flow.Text
	RefreshStop, RefreshNeeds, Pasted, PastedLead       flow.Text
	NoTraceThere                                        flow.Text
}

func newKeyWords() keyWords {
	return keyWords{
		Strip:        flow.T("The layers at a glance", "各层一览"),
		QueuesName:   flow.T("queues", "队列"),
		LockName:     flow.T("lock", "锁"),
		MarkerName:   flow.T("marker", "标记"),
		RecordName:   flow.T("record", "记录"),
		NoQueue:      flow.T("none configured", "未配置"),
		NoLock:       flow.T("none configured", "未配置"),
		NoMarker:     flow.T("none configured", "未配置"),
		Pending:      flow.T("Not every layer has answered yet, so this verdict may change.", "并非每一层都已应答，判定可能改变。"),
		WaitAll:      flow.T("Wait for all layers", "等待所有层"),
		Path:         flow.T("The way of the message", "消息经过的路径"),
		PathLead:     flow.T("what each gate is for, and how far it came", "每道关卡的作用，以及消息走到了哪里"),
		Near:         flow.T("Near by", "相近的键"),
		NearLead:     flow.T("Other keys that could be meant. None of them stands for this one.", "可能想找的其他键；它们都不能代替这个键。"),
		NearRedis:    flow.T("a Redis key that reads alike", "写法相近的 Redis 键"),
		NearRows:     flow.T("MySQL takes this row for the key", "MySQL 认为该行就是这个键"),
		Now:          flow.T("now; what follows is still to come", "现在；以下尚未发生"),
		Idle:         flow.T("%v without an event", "%v没有事件"),
		Report:       flow.T("Incident report (Markdown)", "故障报告（Markdown）"),
		ReportLead:   flow.T("This answer for a ticket or a chat; what the stores hold stays text in it.", "用于工单或聊天；存储中的内容在其中保持为文本。"),
		ReportFile:   flow.T("Download the report", "下载报告"),
		JSONFile:     flow.T("Download as JSON", "下载 JSON"),
		RefreshOn:    flow.T("Refresh every %d s", "每 %d 秒刷新"),
		Refreshing:   flow.T("Refreshes every %d s", "每 %d 秒刷新一次"),
		Pause:        flow.T("Pause", "暂停"),
		Resume:       flow.T("Go on", "继续"),
		Paused:       flow.T("Paused", "已暂停"),
		Ended:        flow.T("Stopped after 10 min", "10 分钟后已停止"),
		RefreshStop:  flow.T("Turn off", "关闭"),
		RefreshNeeds: flow.T("This needs JavaScript.", "需要启用 JavaScript。"),
		Pasted:       flow.T("This id may have been pasted with something around it:", "该 ID 可能带有多余的首尾内容："),
		PastedLead:   flow.T("Answered as it was typed. Without it:", "以上按原样查询。去掉后："),
		NoTraceThere: flow.T("no trace of it either", "同样没有任何痕迹"),
	}
}

func badWait() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_wait",
		Title:  flow.T("The parameter wait has a value that is not known.", "参数 wait 的值无法识别。"),
		Remedy: flow.T("Write wait=all to wait for every layer, or leave it out.", "写 wait=all 以等待所有层，或省略该参数。"),
	}
}

func badRefresh() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "bad_refresh",
		Title:  flow.T("The parameter refresh is not a number that is allowed.", "参数 refresh 不在允许范围内。"),
		Remedy: flow.T("Give whole seconds from %d to %d, or leave it out.", "请给出 %d 到 %d 的整数秒，或省略该参数。", minRefresh, maxRefresh),
	}
}
