package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const redisStartTimeout = 30 * time.Second

// RedisOptions says how a private Redis differs from an empty one without persistence.
type RedisOptions struct {
	// Args follow the package's own arguments and win over them, for example "--requirepass", "secret". A first
	// argument without a dash is a configuration file (Sentinel needs one that it can write). May be empty.
	Args []string
}

// Redis is a running private Redis.
type Redis struct {
	Addr string // host:port
	Pid  int
	run  *run
}

// StartRedis starts a Redis (or, by its arguments, a Sentinel or a Cluster node) and returns when it answers. ctx
// bounds the start only. A missing program is a NotInstalled.
func StartRedis(ctx context.Context, opts RedisOptions) (*Redis, error) {
	return startRedis(ctx, opts, FreePort)
}

// Stop ends the server and removes its files. It takes at most some seconds and may be called again.
func (r *Redis) Stop() error { return r.run.stop() }

func startRedis(ctx context.Context, opts RedisOptions, ports portSource) (*Redis, error) {
	program, err := find(searchPath(), "redis-server")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, redisStartTimeout)
	defer cancel()
	return retryPorts(func() (*Redis, error) { return redisAttempt(ctx, program, opts, ports) })
}

func redisAttempt(ctx context.Context, program string, opts RedisOptions, ports portSource) (_ *Redis, err error) {
	port, err := ports()
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir("redis")
	if err != nil {
		return nil, err
	}
	r := &Redis{Addr: address(port), run: &run{dir: dir}}
	defer func() {
		if err != nil {
			_ = r.Stop()
		}
	}()
	socket := dir.file("s")
	c, err := r.run.start("redis-server", exec.Command(program, redisArgs(port, socket, dir.path, opts.Args)...))
	if err != nil {
		return nil, err
	}
	r.Pid = c.pid
	if err := c.await(ctx, func(ctx context.Context) error { return redisIsOurs(ctx, socket, c.pid) }); err != nil {
		return nil, err
	}
	return r, nil
}

func redisArgs(port int, socket, dir string, extra []string) []string {
	var args []string
	if len(extra) > 0 && !strings.HasPrefix(extra[0], "-") {
		args, extra = extra[:1:1], extra[1:]
	}
	args = append(args, "--port", strconv.Itoa(port), "--bind", loopback, "--unixsocket", socket,
		"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
	return append(args, extra...)
}

// redisIsOurs asks over the socket in our own directory, where no other server can answer. Redis ends at the start
// when it cannot bind its port, so a child that answers here owns the port as well. A refusal for want of a password
// or a permission is an answer, too.
func redisIsOurs(ctx context.Context, socket string, pid int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "INFO server\r\n"); err != nil {
		return err
	}
	answer := bufio.NewScanner(conn)
	for answer.Scan() {
		line := answer.Text()
		switch {
		case strings.HasPrefix(line, "-NOAUTH"), strings.HasPrefix(line, "-NOPERM"):
			return nil
		case strings.HasPrefix(line, "-"):
			return errors.New(line)
		case strings.HasPrefix(line, "process_id:"):
			if line != "process_id:"+strconv.Itoa(pid) {
				return fmt.Errorf("the server on %s has %s, not %d", socket, line, pid)
			}
			return nil
		}
	}
	return fmt.Errorf("the server on %s does not say its process id: %v", socket, answer.Err())
}
