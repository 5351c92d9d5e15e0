package console

import (
	"idemscope/internal/answer"
	"idemscope/internal/verdict"
)

// gateView is one gate on the way of the message.
type gateView struct {
	verdict.Gate
	// Place is its number on the way.
	Place int
	// Pointed: the verdict points here.
	Pointed bool
}

func newGates(a answer.Answer, v verdictView) []gateView {
	var gates []gateView
	for i, g := range verdict.Gates(a.Dossier, a.Verdict) {
		gates = append(gates, gateView{Gate: g, Place: i + 1, Pointed: v.At(string(g.Layer))})
	}
	return gates
}
