package console

import (
	"errors"
	"net/http"
	"time"

	"idemscope/internal/access"
	"idemscope/internal/flow"
)

// accessFault words why somebody was not let in, or a form not taken.
func (c *console) accessFault(err error) *fault {
	var wait access.ErrThrottled
	switch {
	case errors.As(err, &wait):
		return throttledFault(wait.After)
	case errors.Is(err, access.ErrOtherSite):
		return otherSite()
	case errors.Is(err, access.ErrSignIn):
		return signInFirst()
	case errors.Is(err, access.ErrPassword):
		return wrongPassword()
	case errors.Is(err, access.ErrBusy):
		return signInBusy()
	case errors.Is(err, access.ErrNotOperator) && !c.Actions:
		return actionsOff()
	case errors.Is(err, access.ErrNotOperator):
		return roleFault(access.Operator, "not_operator")
	case errors.Is(err, access.ErrNoRole):
		return roleFault(access.Viewer, "no_role")
	case errors.Is(err, access.ErrState):
		return providerState()
	case errors.Is(err, access.ErrProvider):
		return providerFault()
	}
	return formFault(err)
}

// needsRole words that a right is missing.
func needsRole(r access.Role) flow.Text {
	return flow.T("This needs the role %s.", "需要角色 %s。", string(r))
}

func roleFault(r access.Role, code string) *fault {
	return &fault{
		Status: http.StatusForbidden, Code: code, Title: needsRole(r),
		Remedy: flow.T("Roles are given in the configuration, under console.auth.roles.", "角色在配置的 console.auth.roles 中分配。"),
	}
}

func signInFirst() *fault {
	return &fault{
		Status: http.StatusUnauthorized, Code: "sign_in",
		Title:  flow.T("Sign in first.", "请先登录。"),
		Remedy: flow.T("Programs send name and password of the password file as HTTP Basic, or come through the trusted proxy.", "程序请以 HTTP Basic 方式发送密码文件中的用户名和密码，或经由受信任的代理访问。"),
	}
}

func wrongPassword() *fault {
	return &fault{
		Status: http.StatusUnauthorized, Code: "wrong_password",
		Title:  flow.T("The name or the password is wrong.", "用户名或密码错误。"),
		Remedy: flow.T("Try again; after several failures you have to wait.", "请重试；多次失败后需要等待。"),
	}
}

func throttledFault(wait time.Duration) *fault {
	return &fault{
		Status: http.StatusTooManyRequests, Code: "throttled",
		Title:  flow.T("Too many sign-ins failed.", "登录失败次数过多。"),
		Remedy: flow.T("Wait %v, then try again.", "请等待 %v后重试。", flow.Span(max(time.Second, wait.Truncate(time.Second)))),
	}
}

func signInBusy() *fault {
	return &fault{
		Status: http.StatusServiceUnavailable, Code: "sign_in_busy",
		Title:  flow.T("Too many people sign in at once.", "同时登录的人过多。"),
		Remedy: flow.T("Try again in a moment.", "请稍后重试。"),
	}
}

func providerState() *fault {
	return &fault{
		Status: http.StatusBadRequest, Code: "sign_in_state",
		Title:  flow.T("This sign-in was not begun in this browser, or too long ago.", "登录不是在此浏览器中发起的，或发起时间过久。"),
		Remedy: flow.T("Begin again from the sign-in page.", "请从登录页重新开始。"),
	}
}

func providerFault() *fault {
	return &fault{
		Status: http.StatusBadGateway, Code: "sign_in_provider",
		Title:  flow.T("The identity provider did not confirm who you are.", "身份提供方未能确认你的身份。"),
		Remedy: flow.T("Begin again from the sign-in page; the log of idemscope says what was wrong.", "请从登录页重新开始；原因见 idemscope 的日志。"),
	}
}

// formFaults are the forms that were not taken; nothing was changed by them.
var formFaults = []struct {
	err   error
	code  string
	title flow.Text
}{
	{access.ErrFormMissing, "form_missing", flow.T("Nothing was changed: the form has no token.", "没有做任何更改：表单没有令牌。")},
	{access.ErrFormWrong, "form_wrong", flow.T("Nothing was changed: the form was made for somebody else, or for an earlier sign-in.", "没有做任何更改：表单属于他人或之前的登录。")},
	{access.ErrFormExpired, "form_expired", flow.T("Nothing was changed: the page stood open for more than an hour.", "没有做任何更改：页面打开已超过一小时。")},
	{access.ErrFormUsed, "form_used", flow.T("This form was sent before; it was not carried out a second time.", "该表单已提交过，没有再次执行。")},
}

func formFault(err error) *fault {
	f := &fault{
		Status: http.StatusForbidden, Code: "form_refused", cause: err,
		Title:  flow.T("Nothing was changed: the form was not accepted.", "没有做任何更改：表单未被接受。"),
		Remedy: flow.T("Open the page anew, look at what it shows now, and use its button.", "请重新打开页面，查看当前内容，再使用页面上的按钮。"),
	}
	for _, known := range formFaults {
		if errors.Is(err, known.err) {
			f.Code, f.Title, f.cause = known.code, known.title, nil
		}
	}
	return f
}

// signInWords are the texts of the sign-in page.
type signInWords struct {
	Title, Lead, Name, Password, Button, Provider, Out flow.Text
}

func newSignInWords() signInWords {
	return signInWords{
		Title:    flow.T("Sign in", "登录"),
		Lead:     flow.T("to see what happened to a message", "以查看消息的处理情况"),
		Name:     flow.T("Name", "用户名"),
		Password: flow.T("Password", "密码"),
		Button:   flow.T("Sign in", "登录"),
		Provider: flow.T("Sign in with the identity provider", "使用身份提供方登录"),
		Out:      flow.T("You are signed out.", "已退出登录。"),
	}
}
