package console

import (
	"context"

	"idemscope/internal/answer"
	"idemscope/internal/flow"
)

// pastedView is the key without what seems to have been pasted along with it.
type pastedView struct {
	Extra []flow.Text
	Key   keyView
	// Trace: some layer shows that key, or could not be read.
	Trace   bool
	Verdict verdictView
	URL     string
}

// askPasted looks the key up without what seems to have been pasted along. It never
// stands for the key that was asked. The channel gives nil where there is no such thing.
func (c *console) askPasted(ctx context.Context, p flow.Place, look func(context.Context, flow.Place) (answer.Answer, error)) <-chan *answer.Answer {
	out := make(chan *answer.Answer, 1)
	bare, ok := flow.Unpaste(p.Key.BizID)
	if !ok {
		out <- nil
		return out
	}
	p.Key.BizID = bare.Bare
	go func() {
		a, err := look(ctx, p)
		if err != nil {
			out <- nil
			return
		}
		out <- &a
	}()
	return out
}

func (c *console) newPasted(v visit, a *answer.Answer) *pastedView {
	if a == nil {
		return nil
	}
	typed, _ := flow.Unpaste(v.values.Get("id"))
	return &pastedView{
		Extra: typed.Extra, Key: newKeyView(a.Key), Trace: hasTrace(*a), Verdict: newVerdictView(a.Verdict),
		URL: v.link("key", keyValues(a.Key, v.values.Get("flow"))),
	}
}
