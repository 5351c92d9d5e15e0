package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"mime"
	"net/http"
	"time"
)

const (
	// FormField is the field of a form that holds its token; FormHeader the header
	// for requests that are no forms.
	FormField, FormHeader = "form_token", "X-Form-Token"
	// formLasts is how long a page can stand open before it is sent.
	formLasts = time.Hour
	// nonceSize is how long the part of a token is that makes it unique.
	nonceSize = 16
)

// Why a form was not accepted.
var (
	// ErrOtherSite: a page of another site sent it.
	ErrOtherSite = errors.New("sent by a page of another site")
	// ErrFormMissing: it has no token.
	ErrFormMissing = errors.New("the form has no token")
	// ErrFormWrong: its token was not made for this person.
	ErrFormWrong = errors.New("the form's token was not made for this person")
	// ErrFormExpired: the page was open for too long.
	ErrFormExpired = errors.New("the form is too old")
	// ErrFormUsed: it was sent before.
	ErrFormUsed = errors.New("the form was sent before")
)

// bound names whose forms are whose: those of a sign-in end with it.
func (v Visitor) bound() string {
	if v.Session != "" {
		return "session " + v.Session
	}
	return string(v.Source) + " " + v.Name
}

// Token returns a token for one form of the visitor of ctx. It can be used once,
// within the hour.
func (g *Guard) Token(ctx context.Context) string {
	data := make([]byte, nonceSize, nonceSize+8)
	_, _ = rand.Read(data)
	ends := g.Memory.now().Add(formLasts).Unix()
	return g.seal(forForm, VisitorOf(ctx).bound(), binary.BigEndian.AppendUint64(data, uint64(ends)))
}

// Accept checks that the visitor of the request's context saw the form that the
// request sends, and burns its token. The form must have been parsed. A refusal is recorded.
//
// A request of type application/json without a cookie needs no token: browsers
// do not send that type to another site unasked.
//
// Errors: ErrOtherSite, ErrFormMissing, ErrFormWrong, ErrFormExpired, ErrFormUsed.
func (g *Guard) Accept(r *http.Request) error {
	v := VisitorOf(r.Context())
	err := g.accept(r, v)
	if err != nil {
		g.refused(r, v, r.Method+" "+r.URL.Path, err)
	}
	return err
}

func (g *Guard) accept(r *http.Request, v Visitor) error {
	if g.otherSite(r) {
		return ErrOtherSite
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" && v.Session == "" {
		return nil
	}
	token := r.Header.Get(FormHeader)
	if token == "" {
		token = r.PostForm.Get(FormField)
	}
	if token == "" {
		return ErrFormMissing
	}
	data, ok := g.open(forForm, v.bound(), token)
	if !ok || len(data) != nonceSize+8 {
		return ErrFormWrong
	}
	ends := time.Unix(int64(binary.BigEndian.Uint64(data[nonceSize:])), 0)
	if !g.Memory.now().Before(ends) {
		return ErrFormExpired
	}
	if !g.Memory.burnt.add(base64.RawURLEncoding.EncodeToString(data[:nonceSize]), ends) {
		return ErrFormUsed
	}
	return nil
}
