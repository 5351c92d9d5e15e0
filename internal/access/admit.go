package access

import (
	"errors"
	"net/http"

	"idemscope/internal/flow"
)

// Need is what an address asks of a visitor.
type Need int

const (
	// ToEnter: the right to see states; to change something, the right to do that, too.
	ToEnter Need = iota
	// ToLook: the right to see states, whatever the method: there is nothing behind
	// the address that could change.
	ToLook
	// ToScrape: as ToEnter, but whoever the listener let in may read metrics.
	ToScrape
	// Nothing: everybody may, such as to ask for health or to sign in.
	Nothing
)

// Why somebody was not admitted.
var (
	// ErrSignIn: it is not known who asks.
	ErrSignIn = errors.New("not signed in")
	// ErrNoRole: the person is known and is no viewer.
	ErrNoRole = errors.New("the person has no role viewer")
	// ErrNotOperator: the person may see, but change nothing.
	ErrNotOperator = errors.New("the person has no role operator")
)

// changes reports a method that may change something.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// Admit finds out who sent the request and whether that person may. It is the one
// place where read-only is enforced: whatever is not GET, HEAD or OPTIONS needs an
// operator, and must not be sent by a page of another site. Its refusals of
// changes are recorded.
//
// Errors: ErrSignIn, ErrNoRole, ErrNotOperator, ErrOtherSite, and those of a
// password that was sent along (ErrPassword, ErrThrottled, ErrBusy).
func (g *Guard) Admit(r *http.Request, need Need) (Visitor, error) {
	v, err := g.identify(r, need != Nothing)
	g.strip(r)
	err = g.decide(r, v, need, err)
	// A wrong password was recorded where it was checked.
	if err != nil && changes(r) && !isCredential(err) {
		g.refused(r, v, r.Method+" "+flow.Visible(r.URL.Path), err)
	}
	return v, err
}

// decide is Admit for a visitor who is known. wrong is what is wrong with the
// password that was sent along; it matters only where one is needed.
func (g *Guard) decide(r *http.Request, v Visitor, need Need, wrong error) error {
	switch {
	case changes(r) && g.otherSite(r):
		return ErrOtherSite
	case need == Nothing, need == ToScrape && g.Listener:
		return nil
	case wrong != nil:
		return wrong
	case !v.Known():
		return ErrSignIn
	case !v.May(Viewer):
		return ErrNoRole
	case changes(r) && need != ToLook && !v.May(Operator):
		return ErrNotOperator
	}
	return nil
}

// AdmitReload decides who may make the process read its configuration anew: an
// operator, where the guard knows people; otherwise whoever gets here, but never
// a page of another site.
func (g *Guard) AdmitReload(r *http.Request) error {
	need := ToEnter
	if !g.asks() {
		need = Nothing
	}
	_, err := g.Admit(r, need)
	return err
}
