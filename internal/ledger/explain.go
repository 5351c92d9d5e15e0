package ledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/internal/flow"
)

// Explain words an error of this package for people. It never holds a
// password: neither the servers' messages nor the driver's contain one.
func Explain(err error) flow.Text {
	var own interface{ Text() flow.Text }
	var late *lateError
	var server *mysql.MySQLError
	switch {
	case err == nil:
		return flow.Text{}
	case errors.As(err, &own):
		return own.Text()
	case errors.As(err, &late):
		return flow.T("no answer within %s", "%s内没有应答", flow.Span(late.after.Round(100*time.Millisecond)))
	case errors.Is(err, context.DeadlineExceeded):
		return flow.T("no answer in time", "未能及时应答")
	case errors.Is(err, context.Canceled):
		return flow.T("the look-up was called off", "查询已取消")
	case errors.As(err, &server):
		return explainNumber(server)
	}
	return explainConnection(err)
}

// explainNumber words the errors that a server numbers.
func explainNumber(e *mysql.MySQLError) flow.Text {
	if text, ok := numbered[e.Number]; ok {
		return flow.T("%s (MySQL error %d)", "%s（MySQL 错误 %d）", text, e.Number)
	}
	return flow.T("MySQL error %d: %s", "MySQL 错误 %d：%s", e.Number, e.Message)
}

// Numbers of server errors on which this package acts.
const (
	errUnknownColumn = 1054
	errNoSuchTable   = 1146
	errNoSuchIndex   = 1176
	errMixedCharsets = 1267
	errMixedThree    = 1270
	errMixedList     = 1271
	errWrongValue    = 1525
	errCannotConvert = 3988
)

// refusesCharacters has the numbers for characters that a column's character set
// lacks: one value is compared with it, two, or more.
var refusesCharacters = []uint16{errMixedCharsets, errMixedThree, errMixedList, errCannotConvert}

var (
	wrongUser = flow.T("user or password is wrong, or this user may not connect from here", "用户名或密码错误，或不允许该用户从本机连接")
	denied    = flow.T("this user may not read the table: grant SELECT on it", "该用户无权读取此表：请授予 SELECT 权限")
	tooSlow   = flow.T("the server ended the statement at its time limit", "语句超过时限，已被服务器终止")
	crowded   = flow.T("the server has no connection left", "服务器连接数已用尽")
	crowdUser = flow.T("this user has used up its share of connections or statements", "该用户的连接或语句配额已用尽")
	ended     = flow.T("the server ended the connection", "服务器终止了连接")
	goesDown  = flow.T("the server is shutting down", "服务器正在关闭")
	charset   = flow.T("the id column's character set cannot hold this id", "ID 列的字符集无法保存该 ID")
)

var numbered = map[uint16]flow.Text{
	1040: crowded,
	1041: flow.T("the server is out of memory", "服务器内存不足"),
	1044: flow.T("this user may not use the database", "该用户无权使用此数据库"),
	1045: wrongUser,
	1049: flow.T("there is no such database", "数据库不存在"),
	1053: goesDown,
	1054: flow.T("there is no such column", "列不存在"),
	1129: flow.T("the server has blocked this host after failed connections: FLUSH HOSTS frees it", "连接失败次数过多，服务器已屏蔽本机：可用 FLUSH HOSTS 解除"),
	1130: flow.T("the server takes no connection from this host", "服务器不允许从本机连接"),
	1142: denied,
	1143: denied,
	1146: flow.T("there is no such table", "表不存在"),
	1176: flow.T("the index has been dropped", "索引已被删除"),
	1193: flow.T("the server knows no time limit for statements: MariaDB 10.1 or MySQL 5.7.8 is the oldest that works", "服务器不支持语句时限：最低需要 MariaDB 10.1 或 MySQL 5.7.8"),
	1203: crowdUser,
	1205: flow.T("waited too long for a lock, perhaps of a running ALTER", "等待锁超时，可能有 ALTER 正在执行"),
	1226: crowdUser,
	1267: charset,
	1270: charset,
	1271: charset,
	1317: flow.T("somebody killed the statement", "语句被人为终止"),
	1698: wrongUser,
	1792: flow.T("this session is read-only", "当前会话为只读"),
	1820: flow.T("this user's password has expired", "该用户的密码已过期"),
	1862: flow.T("this user's password has expired", "该用户的密码已过期"),
	1927: ended,
	1969: tooSlow,
	3024: tooSlow,
	3159: flow.T("the server demands TLS: configure tls", "服务器要求 TLS：请配置 tls"),
	3988: charset,
	4031: ended,
}

// explainConnection words what happens below SQL.
func explainConnection(err error) flow.Text {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case isTLS(err):
		return flow.T("TLS failed: %v", "TLS 失败：%v", root(err))
	case errors.As(err, &dns):
		return flow.T("the host name %s does not resolve", "无法解析主机名 %s", dns.Name)
	case errors.As(err, &op) && op.Op == "dial" && op.Addr != nil:
		return explainDial(op)
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op):
		return flow.T("the connection was lost", "连接已断开")
	}
	return flow.T("MySQL could not be read: %v", "无法读取 MySQL：%v", root(err))
}

// root returns the innermost error: what was attempted is for logs.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func explainDial(op *net.OpError) flow.Text {
	switch {
	case errors.Is(op.Err, syscall.ECONNREFUSED):
		return flow.T("connection refused: nothing listens at %s", "连接被拒绝：%s 没有服务在监听", op.Addr)
	case errors.Is(op.Err, syscall.ENOENT):
		return flow.T("there is no socket %s", "套接字 %s 不存在", op.Addr)
	case op.Timeout():
		return flow.T("%s does not answer", "%s 没有应答", op.Addr)
	}
	return flow.T("%s cannot be reached: %v", "无法连接 %s：%v", op.Addr, op.Err)
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var alert tls.AlertError
	var header tls.RecordHeaderError
	return errors.Is(err, mysql.ErrNoTLS) || errors.As(err, &verify) || errors.As(err, &authority) ||
		errors.As(err, &host) || errors.As(err, &alert) || errors.As(err, &header)
}

// isNumber reports whether the server answered with one of the numbers.
func isNumber(err error, numbers ...uint16) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	for _, n := range numbers {
		if e.Number == n {
			return true
		}
	}
	return false
}
