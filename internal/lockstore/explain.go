package lockstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// Error says why a Redis could not be read. Neither its text nor its message
// holds a secret.
type Error struct {
	// Text is the explanation for people.
	Text flow.Text
	// Source names the store, as in flow.Observation.
	Source string
	cause  error
}

// Error is for logs.
func (e *Error) Error() string { return e.Source + ": " + e.Text.EN }

// Unwrap gives the client library's error.
func (e *Error) Unwrap() error { return e.cause }

// Words are the explanation for people.
func (e *Error) Words() flow.Text { return e.Text }

// The command in Redis's sentences about a missing permission and about a
// command that it does not know.
var (
	refusedCommand = regexp.MustCompile(`'([^']+)' command`)
	unknownCommand = regexp.MustCompile("unknown command ['`]([^'`]+)['`]")
)

// failure explains the commands that failed, or returns nil when none did. The
// first one decides; of missing permissions it names all, so that they can be
// granted at once.
func (s *Store) failure(cmds []redis.Cmder, took time.Duration) *Error {
	var first error
	var refused []string
	for _, cmd := range cmds {
		err := cmd.Err()
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		if m := refusedCommand.FindStringSubmatch(err.Error()); m != nil && redis.IsPermissionError(err) {
			if name := strings.ToUpper(m[1]); len(refused) == 0 || refused[len(refused)-1] != name {
				refused = append(refused, name)
			}
		}
	}
	if first == nil {
		return nil
	}
	text := s.explain(first, took)
	if len(refused) > 0 && redis.IsPermissionError(first) {
		names := strings.Join(refused, ", ")
		text = flow.T("the Redis user may not run %s: grant it", "Redis 用户没有执行 %s 的权限：请授权", names)
	}
	if s.opts.Mode == ModeSentinel && strings.Contains(first.Error(), "all sentinels") && !errors.Is(first, redis.Nil) {
		text = flow.T("no sentinel answers: %s", "没有哨兵应答：%s", text)
	}
	return &Error{Text: text, Source: s.source(), cause: first}
}

// explain puts one error into words: what it means and, where it is known, what
// to change.
func (s *Store) explain(err error, took time.Duration) flow.Text {
	var server redis.Error
	if errors.As(err, &server) && !errors.Is(err, redis.Nil) {
		return s.explainServer(server.Error())
	}
	var opErr *net.OpError
	var dnsErr *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return flow.T("the question was called off before Redis answered", "在 Redis 应答之前查询已被取消")
	case errors.Is(err, redis.ErrClosed):
		return flow.T("the connection is closed: the program is stopping", "连接已关闭：程序正在停止")
	case errors.Is(err, redis.Nil):
		return flow.T("no sentinel watches a master named %s: check master_name", "没有哨兵监视名为 %s 的主节点：请检查 master_name", s.opts.MasterName)
	case errors.As(err, &dnsErr):
		return flow.T("the host name %s is not known", "主机名 %s 无法解析", dnsErr.Name)
	case errors.As(err, &unknownCA), errors.As(err, &certificate):
		return flow.T("the server's TLS certificate is not trusted: check tls.ca_file and tls.server_name", "服务器的 TLS 证书不受信任：请检查 tls.ca_file 和 tls.server_name")
	case errors.Is(err, syscall.ECONNREFUSED):
		return flow.T("connection refused: nothing listens on %s", "连接被拒绝：%s 上没有服务在监听", dialled(err))
	case isTimeout(err) && s.opts.TLS != nil:
		return flow.T("no answer within %s; a Redis that does not use TLS keeps silent, too", "%s内没有应答；不使用 TLS 的 Redis 也会没有应答", flow.Span(rounded(took)))
	case isTimeout(err):
		return flow.T("no answer within %s", "%s内没有应答", flow.Span(rounded(took)))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return flow.T("the server closed the connection: it is full (maxclients), wants TLS, or stops", "服务器关闭了连接：可能已满（maxclients）、要求 TLS 或正在停止")
	case errors.As(err, &opErr) && opErr.Op == "dial":
		return flow.T("no connection to %s: %s", "无法连接 %s：%s", dialled(err), opErr.Err)
	}
	return flow.T("Redis could not be read: %s", "无法读取 Redis：%s", s.harmless(err.Error()))
}

// explainServer takes a refusal in the server's own words.
func (s *Store) explainServer(message string) flow.Text {
	starts := func(prefix string) bool { return strings.HasPrefix(message, prefix) }
	switch {
	case starts("NOAUTH"):
		return flow.T("Redis asks for a password, and none is configured", "Redis 要求密码，而配置中没有")
	case starts("WRONGPASS"), starts("ERR invalid password"):
		return flow.T("wrong Redis user or password, or the user is disabled", "Redis 用户或密码错误，或该用户已被禁用")
	case strings.Contains(message, "without any password"), strings.Contains(message, "no password is set"):
		return flow.T("a password is configured, and this Redis has none: remove it, or name the user", "配置了密码，而该 Redis 没有密码：请删除密码或指定用户")
	case starts("NOPERM"):
		return flow.T("the Redis user may not read this key: its key patterns do not cover it", "Redis 用户没有读取该键的权限：其键模式未包含该键")
	case starts("LOADING"):
		return flow.T("Redis is starting and still loads its data", "Redis 正在启动，仍在加载数据")
	case starts("MASTERDOWN"):
		return flow.T("this Redis is a replica that has lost its master, and it does not answer from old data", "该 Redis 是副本，已与主节点失去联系，且不用旧数据应答")
	case starts("CLUSTERDOWN"):
		return flow.T("the Redis cluster is down, or nobody serves the slot of this key", "Redis 集群不可用，或没有节点负责该键的槽")
	case starts("MOVED"), starts("ASK"):
		return flow.T("this server is a node of a cluster and another node has the key: set mode: cluster", "该服务器是集群节点，键在另一个节点上：请设置 mode: cluster")
	case starts("ERR DB index is out of range"):
		return flow.T("the server has no database %d: check db", "服务器没有编号为 %d 的数据库：请检查 db", s.opts.DB)
	case starts("ERR SELECT is not allowed in cluster mode"):
		return flow.T("this server is a node of a cluster, which has database 0 only: remove db and set mode: cluster", "该服务器是集群节点，只有 0 号数据库：请删除 db 并设置 mode: cluster")
	case unknownCommand.MatchString(message) && s.opts.Mode == ModeSentinel:
		return flow.T("this server is not a sentinel: mode sentinel takes the addresses of sentinels", "该服务器不是哨兵：sentinel 模式需要哨兵的地址")
	case unknownCommand.MatchString(message):
		name := strings.ToUpper(unknownCommand.FindStringSubmatch(message)[1])
		return flow.T("the server does not know the command %s: if it is a sentinel, set mode: sentinel", "服务器不支持命令 %s：如果它是哨兵，请设置 mode: sentinel", name)
	case strings.Contains(message, "cluster support disabled"):
		return flow.T("this server is not a node of a cluster: set mode: single", "该服务器不是集群节点：请设置 mode: single")
	}
	return flow.T("Redis refuses: %s", "Redis 拒绝：%s", s.harmless(message))
}

// maxMessage bounds a foreign message inside one of ours, in bytes.
const maxMessage = 200

// harmless makes a foreign message fit to be shown: old servers and proxies
// echo the arguments of a command that they do not know, AUTH included.
func (s *Store) harmless(message string) string {
	for _, secret := range []string{s.opts.Password, s.opts.SentinelPassword} {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, "<secret>")
		}
	}
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return flow.Visible(message)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// dialled is the address that a failed connection was meant for: of a sentinel
// or a cluster it may be another one than those that are configured.
func dialled(err error) string {
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Addr != nil {
		return opErr.Addr.String()
	}
	return "?"
}

// rounded keeps what a person reads of a waiting time.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
