package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
)

// Dial10 connects by AMQP 1.0, which some questions need: RabbitMQ serves both
// versions on one port, this one without a plugin since 4.0. name is what
// RabbitMQ shows for the connection. ctx bounds connecting only. end closes the
// connection within a second, whether or not it still works.
func (a Address) Dial10(ctx context.Context, name string) (conn *amqp10.Conn, end func(), err error) {
	uri, err := amqp.ParseURI(a.uri)
	if err != nil {
		return nil, nil, errAddress
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	line, err := a.connect(ctx, uri)
	if err != nil {
		return nil, nil, err
	}
	conn, err = amqp10.NewConn(ctx, line, &amqp10.ConnOptions{
		ContainerID: name, HostName: "vhost:" + uri.Vhost, SASLType: amqp10.SASLTypePlain(uri.Username, uri.Password), IdleTimeout: 2 * heartbeat,
	})
	if err != nil {
		return nil, nil, errors.Join(err, line.Close())
	}
	return conn, func() {
		_ = line.SetDeadline(time.Now().Add(time.Second))
		_ = conn.Close()
	}, nil
}

// connect opens the line, with TLS where the URL asks for it.
func (a Address) connect(ctx context.Context, uri amqp.URI) (net.Conn, error) {
	line, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.host)
	if err != nil || uri.Scheme != "amqps" {
		return line, err
	}
	config := &tls.Config{}
	if a.tls != nil {
		config = a.tls.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = uri.Host
	}
	secured := tls.Client(line, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return secured, nil
}

// explain10 puts a refusal by AMQP 1.0 into words; it is empty for any other error.
func (a Address) explain10(err error) flow.Text {
	var onConn *amqp10.ConnError
	var onSession *amqp10.SessionError
	var onLink *amqp10.LinkError
	var refused *amqp10.Error
	switch {
	case errors.As(err, &onLink) && onLink.RemoteErr != nil:
		refused = onLink.RemoteErr
	case errors.As(err, &onSession) && onSession.RemoteErr != nil:
		refused = onSession.RemoteErr
	case errors.As(err, &onConn) && onConn.RemoteErr != nil:
		refused = onConn.RemoteErr
	case !errors.As(err, &refused):
		return flow.Text{}
	}
	reason := flow.Visible(cut(refused.Description))
	if refused.Condition == amqp10.ErrCondUnauthorizedAccess {
		return flow.T("user %s lacks a permission: %s", "用户 %s 缺少权限：%s", flow.Visible(a.user), reason)
	}
	return flow.T("RabbitMQ refuses: %s %s", "RabbitMQ 拒绝：%s %s", flow.Visible(cut(string(refused.Condition))), reason)
}
