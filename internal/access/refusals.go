package access

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"idemscope/internal/audit"
	"idemscope/internal/flow"
)

// quota bounds how many refusals are recorded, because everybody can cause one
// and each takes room on a disk.
type quota struct {
	now func() time.Time

	mu      sync.Mutex
	begins  time.Time
	used    int
	dropped int
}

// perMinute is how many refusals are recorded in a minute.
const perMinute = 120

// take returns how many were left out since the last one that was recorded; ok is
// false when this one is left out, too.
func (q *quota) take() (leftOut int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.now(); now.Sub(q.begins) >= time.Minute {
		q.begins, q.used = now, 0
	}
	if q.used >= perMinute {
		q.dropped++
		return 0, false
	}
	q.used++
	leftOut, q.dropped = q.dropped, 0
	return leftOut, true
}

// reasons are the refusals in words.
var reasons = map[error]flow.Text{
	ErrSignIn:      flow.T("not signed in", "未登录"),
	ErrNoRole:      flow.T("has no role viewer", "没有 viewer 角色"),
	ErrNotOperator: flow.T("has no role operator", "没有 operator 角色"),
	ErrOtherSite:   flow.T("sent by a page of another site", "由其他站点的页面发出"),
	ErrFormMissing: flow.T("the form has no token", "表单没有令牌"),
	ErrFormWrong:   flow.T("the form's token was not made for this person", "表单令牌不属于此人"),
	ErrFormExpired: flow.T("the form is too old", "表单已过期"),
	ErrFormUsed:    flow.T("the form was sent before", "表单已提交过"),
	ErrPassword:    flow.T("wrong password", "密码错误"),
	errUnknownName: flow.T("wrong password, for a name that is not in the password file", "密码错误，且密码文件中没有该用户名"),
	ErrProvider:    flow.T("the identity provider's answer was not accepted", "身份提供方的应答未被接受"),
	ErrState:       flow.T("the sign-in was not begun in this browser", "登录不是在此浏览器中发起的"),
}

func reasonOf(err error) flow.Text {
	for known, text := range reasons {
		if errors.Is(err, known) {
			return text
		}
	}
	return flow.Text{EN: err.Error(), ZH: err.Error()}
}

// refused records that somebody was refused.
func (g *Guard) refused(r *http.Request, v Visitor, action string, err error) {
	leftOut, ok := g.Memory.quota.take()
	if !ok {
		return
	}
	why := reasonOf(err)
	if leftOut > 0 {
		why = flow.T("%v (%d refusals before it were not recorded)", "%v（此前有 %d 次拒绝未记录）", why, leftOut)
	}
	g.Logger.Warn("refused", "action", action, "who", v.Name, "from", v.From, "why", why.EN)
	if g.Audit == nil {
		return
	}
	e := audit.Entry{
		At: g.Memory.now(), Attempt: rand.Text(), Who: v.Name, From: v.From,
		Action: action, Outcome: audit.Refused, Why: why,
	}
	// It is kept even when the browser does not wait for the answer.
	if err := g.Audit.Append(context.WithoutCancel(r.Context()), e); err != nil {
		g.Logger.Error("a refusal was not recorded", "err", err)
	}
}

// signInFailed records a wrong password. A name that is not there is not kept: it
// may be a password in the wrong field.
func (g *Guard) signInFailed(r *http.Request, name string, there bool, from string) {
	err := ErrPassword
	if !there {
		name, err = "", errUnknownName
	}
	g.refused(r, Visitor{Person: Person{Name: name, From: from}}, "sign-in", err)
}
