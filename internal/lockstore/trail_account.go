package lockstore

import (
	"fmt"
	"time"

	"idemscope/internal/flow"
)

// trailKnown is what is known of the trail beyond the events of one key.
type trailKnown struct {
	// begun: the stream was read as far back as it is going to be.
	begun bool
	// there: the stream holds entries. reports: some of them are of the biz_type.
	there, reports bool
	types          span
	broken         int
}

// trailCoverage says how far the account can be relied on. Consumers of a
// biz_type that never reported may not be instrumented: their silence is none.
func trailCoverage(a *flow.Account, k flow.Key, known trailKnown) {
	a.Coverage = nil
	switch {
	case a.State == flow.Error || !known.begun:
		a.Since = time.Time{}
		return
	case !known.there:
		a.Since = time.Time{}
		if a.State != flow.Found {
			a.State, a.Reason = flow.Unknown, flow.T("no consumer reports a trail", "没有消费者上报轨迹")
		}
	case !known.reports:
		if a.State != flow.Found {
			a.State, a.Reason = flow.Unknown, flow.T("no consumer of biz_type %s has reported a step since %s: it may not be instrumented", "自 %[2]s 起没有业务类型 %[1]s 的消费者上报步骤：可能未接入",
				flow.Visible(k.BizType), rfc(a.Since))
		}
		a.Since = time.Time{}
	case a.Since.Before(known.types.first):
		a.Since = known.types.first
	}
	if !a.Since.IsZero() {
		a.Coverage = append(a.Coverage, flow.T("consumers of this biz_type report since %s, last at %s; one that is not instrumented leaves no trace here",
			"该业务类型的消费者自 %s 起上报，最近一次在 %s；未接入的消费者不会留下轨迹", rfc(a.Since), rfc(known.types.last)))
	}
	if a.Cut {
		a.Coverage = append(a.Coverage, flow.T("only the latest %d steps of this key are kept", "只保留该键最近的 %d 个步骤", len(a.Events)))
	}
	if known.broken > 0 {
		a.Coverage = append(a.Coverage, flow.T("%d entries break the contract; what they lack is missing here", "%d 条记录不符合约定，其缺失的内容在此不可见", known.broken))
	}
}

func rfc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// trailCommand shows the latest entries of the stream: Redis cannot look for one key.
func (s *Store) trailCommand(prefix string) string {
	arg, quoted := cliArgument(trailStream(prefix))
	client := s.cli(s.dataHost(), s.opts.User, s.opts.Password != "")
	if s.opts.Mode == ModeCluster {
		client += " -c"
	}
	if s.opts.DB != 0 {
		client += fmt.Sprintf(" -n %d", s.opts.DB)
	}
	if quoted {
		client += " --quoted-input"
	}
	return fmt.Sprintf("%s%s XREVRANGE %s + - COUNT 1000", s.findMaster(), client, arg)
}
