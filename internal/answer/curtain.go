package answer

import (
	"slices"
	"strings"

	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
)

// HiddenWords stand where somebody may not see what is there.
func HiddenWords() flow.Text {
	return flow.T("hidden: needs the role payload", "已隐藏：需要角色 payload")
}

// Hidden returns the answer for somebody who may see states, but neither messages
// nor results. The verdict stays: it quotes none.
func (a Answer) Hidden() Answer {
	return a.behind(func(r *ledger.Row) {
		r.Result, r.ResultHidden = nil, true
	}, func(e *dossier.RedisEvidence) {
		e.Value, e.ValueHidden = "", true
		if e.Before != nil {
			before := *e.Before
			before.Value = ""
			e.Before = &before
		}
	})
}

// Masked returns the answer with a mask over messages and results.
func (a Answer) Masked(mask func(string) string) Answer {
	return a.behind(func(r *ledger.Row) {
		r.Result = new(mask(*r.Result))
	}, func(e *dossier.RedisEvidence) {
		value := mask(e.Value)
		// What was cut off stays so many bytes.
		e.Length += int64(len(value) - len(e.Value))
		e.Value = value
		if e.Before != nil {
			before := *e.Before
			before.Value = mask(before.Value)
			e.Before = &before
		}
	})
}

// ShownTo returns the answer as somebody may see it: behind the mask, if there is
// one, and without payloads unless they may be seen.
func (a Answer) ShownTo(payload bool, mask func(string) string) Answer {
	if mask != nil {
		a = a.Masked(mask)
	}
	if !payload {
		a = a.Hidden()
	}
	return a
}

// behind returns the answer with every result and every payload in Redis changed.
// The given answer stays as it is.
func (a Answer) behind(result func(*ledger.Row), value func(*dossier.RedisEvidence)) Answer {
	rows := func(all []ledger.Row) []ledger.Row {
		all = slices.Clone(all)
		for i := range all {
			if all[i].Result != nil {
				result(&all[i])
			}
		}
		return all
	}
	a.Record.Rows = rows(a.Record.Rows)
	a.Record.Neighbours = slices.Clone(a.Record.Neighbours)
	for i := range a.Record.Neighbours {
		if n := &a.Record.Neighbours[i]; n.Row.Result != nil {
			result(&n.Row)
		}
	}
	if a.Record.Archive != nil {
		archive := *a.Record.Archive
		archive.Rows = rows(archive.Rows)
		a.Record.Archive = &archive
	}
	a.Lock, a.Marker = changed(a.Lock, isToken, value), changed(a.Marker, isWord, value)
	return a
}

// changed returns the entry with its value changed, unless that is plain.
func changed(e *dossier.RedisEvidence, plain func(string) bool, change func(*dossier.RedisEvidence)) *dossier.RedisEvidence {
	if e == nil || plain(e.Value) && (e.Before == nil || plain(e.Before.Value)) {
		return e
	}
	copied := *e
	change(&copied)
	return &copied
}

// isToken reports the value of a lock that only tells its owners apart: anything
// but a structure, whoever wrote it. It has to be seen to tell who holds the lock.
func isToken(value string) bool {
	start := strings.TrimLeft(value, " \t\r\n")
	return start == "" || start[0] != '{' && start[0] != '[' && !strings.HasPrefix(start, "a:") && !strings.HasPrefix(start, "O:")
}

// isWord reports the value of a marker that tells a state and nothing else: a
// short word such as success, or a short number.
func isWord(value string) bool {
	const longestWord, longestNumber = 32, 3
	digits := strings.Trim(value, "0123456789") == ""
	letters := strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
	return digits && len(value) <= longestNumber || letters && len(value) <= longestWord
}

// maskWords masks what sources of events say in words of their own, before it is
// judged, because a verdict may quote it.
func maskWords(d dossier.Dossier, mask func(string) string) dossier.Dossier {
	for _, account := range []**flow.Account{&d.Tap, &d.Trace, &d.Trail} {
		if *account == nil {
			continue
		}
		copied := **account
		copied.Events = slices.Clone(copied.Events)
		for i := range copied.Events {
			copied.Events[i].Outcome = mask(copied.Events[i].Outcome)
		}
		*account = &copied
	}
	return d
}
