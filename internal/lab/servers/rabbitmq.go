package servers

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const rabbitMQStartTimeout = 2 * time.Minute

// RabbitMQOptions says how a private RabbitMQ is set up.
type RabbitMQOptions struct {
	// StatsInterval is how often the server samples the numbers that its management API shows. Zero means the
	// server's default, 5 s.
	StatsInterval time.Duration
}

// RabbitMQ is a running private RabbitMQ with the management and stream plugins and one administrator. It can be
// passed to another process as JSON; Stop does nothing there.
type RabbitMQ struct {
	AMQP       string // host:port
	Management string // URL without a path, for example http://127.0.0.1:25001
	Stream     string // host:port
	Admin      string // name of the administrator, who has full rights on the vhost "/"
	Password   string // random password of the administrator
	Pid        int
	run        *run
}

// StartRabbitMQ starts a RabbitMQ and returns when its listeners are open, usually after 5 to 10 s. ctx bounds the
// start only. A missing program is a NotInstalled.
func StartRabbitMQ(ctx context.Context, opts RabbitMQOptions) (*RabbitMQ, error) {
	return startRabbitMQ(ctx, opts, FreePort)
}

// Stop ends the server with its port mapper and removes its files. It takes at most some seconds and may be called
// again.
func (r *RabbitMQ) Stop() error { return r.run.stop() }

// rabbitPrograms are the paths of what a broker consists of.
type rabbitPrograms struct{ server, epmd string }

func startRabbitMQ(ctx context.Context, opts RabbitMQOptions, ports portSource) (*RabbitMQ, error) {
	var programs rabbitPrograms
	var err error
	if programs.server, err = findRabbitMQ(searchPath()); err != nil {
		return nil, err
	}
	if programs.epmd, err = findEPMD(searchPath()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, rabbitMQStartTimeout)
	defer cancel()
	return retryPorts(func() (*RabbitMQ, error) { return rabbitMQAttempt(ctx, programs, opts, ports) })
}

// rabbitPorts are the five ports of a broker.
type rabbitPorts struct{ amqp, management, stream, dist, epmd int }

func chooseRabbitPorts(ports portSource) (rabbitPorts, error) {
	var p rabbitPorts
	for _, port := range []*int{&p.amqp, &p.management, &p.stream, &p.dist, &p.epmd} {
		var err error
		if *port, err = ports(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func rabbitMQAttempt(ctx context.Context, programs rabbitPrograms, opts RabbitMQOptions, ports portSource) (_ *RabbitMQ, err error) {
	p, err := chooseRabbitPorts(ports)
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir("rabbitmq")
	if err != nil {
		return nil, err
	}
	r := &RabbitMQ{
		AMQP: address(p.amqp), Management: "http://" + address(p.management), Stream: address(p.stream),
		Admin: "admin", Password: rand.Text(), run: &run{dir: dir},
	}
	defer func() {
		if err != nil {
			_ = r.Stop()
		}
	}()
	if err := r.writeConfig(p, opts); err != nil {
		return nil, err
	}
	epmd, err := r.startEPMD(ctx, programs.epmd, p.epmd)
	if err != nil {
		return nil, err
	}
	node := "idemscope-" + strings.ToLower(rand.Text()[:8]) + "@localhost"
	cmd := exec.Command(programs.server)
	cmd.Env = rabbitEnv(dir, node, p, opts.StatsInterval)
	c, err := r.run.start("rabbitmq-server", cmd)
	if err != nil {
		return nil, err
	}
	r.Pid = c.pid
	if err := c.await(ctx, func(ctx context.Context) error { return r.isOurs(ctx, node, p) }); err != nil {
		return nil, err
	}
	if !epmd.alive() {
		return nil, fmt.Errorf("epmd: %w", errPortTaken)
	}
	return r, nil
}

// startEPMD runs the Erlang port mapper as a child of ours. Otherwise Erlang starts one itself, which stays behind.
// A mapper that finds its port in use ends without a word.
func (r *RabbitMQ) startEPMD(ctx context.Context, program string, port int) (*child, error) {
	c, err := r.run.start("epmd", exec.Command(program, "-port", strconv.Itoa(port), "-address", loopback))
	if err != nil {
		return nil, err
	}
	err = c.await(ctx, func(ctx context.Context) error {
		return exec.CommandContext(ctx, program, "-port", strconv.Itoa(port), "-names").Run()
	})
	if err != nil && !c.alive() {
		return nil, fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return c, err
}

func (r *RabbitMQ) writeConfig(p rabbitPorts, opts RabbitMQOptions) error {
	lines := []string{
		"listeners.tcp.1 = " + address(p.amqp),
		"management.tcp.ip = " + loopback,
		fmt.Sprintf("management.tcp.port = %d", p.management),
		"stream.listeners.tcp.1 = " + address(p.stream),
		"stream.advertised_host = " + loopback,
		fmt.Sprintf("stream.advertised_port = %d", p.stream),
		"default_user = " + r.Admin,
		"default_pass = " + r.Password,
		"disk_free_limit.absolute = 10MB",
		"log.console = true",
		"log.file = false",
	}
	if opts.StatsInterval > 0 {
		lines = append(lines, fmt.Sprintf("collect_statistics_interval = %d", opts.StatsInterval.Milliseconds()))
		// The management plugin collects as often as its finest samples demand; by default that is every 5 s.
		for _, policy := range []string{"global", "basic", "detailed"} {
			lines = append(lines, "management.sample_retention_policies."+policy+".minute = 1")
		}
	}
	files := map[string]string{
		"rabbitmq.conf":   strings.Join(lines, "\n") + "\n",
		"enabled_plugins": "[rabbitmq_management,rabbitmq_stream].\n",
	}
	for name, text := range files {
		if err := os.WriteFile(r.run.dir.file(name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("rabbitmq configuration: %w", err)
		}
	}
	return nil
}

// rabbitEnv is our environment without the settings of another broker, and with every path and port set. One
// scheduler and no busy waiting keep the broker light. RUNNING_UNDER_SYSTEMD makes the start script become the
// broker instead of waiting for it as a shell, so that the broker is our own child.
func rabbitEnv(dir *workDir, node string, p rabbitPorts, statsInterval time.Duration) []string {
	erlang := "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1"
	if statsInterval > 0 {
		erlang += fmt.Sprintf(" -rabbit quorum_tick_interval %d", statsInterval.Milliseconds())
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "RABBITMQ_") && !strings.HasPrefix(v, "ERL_") && !strings.HasPrefix(v, "NOTIFY_SOCKET=") && !strings.HasPrefix(v, "HOME=") {
			env = append(env, v)
		}
	}
	return append(env,
		"HOME="+dir.path,
		"RUNNING_UNDER_SYSTEMD=true",
		"RABBITMQ_NODENAME="+node,
		"RABBITMQ_NODE_IP_ADDRESS="+loopback,
		"RABBITMQ_NODE_PORT="+strconv.Itoa(p.amqp),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(p.dist),
		"RABBITMQ_BASE="+dir.path,
		"RABBITMQ_MNESIA_BASE="+dir.file("mnesia"),
		"RABBITMQ_LOG_BASE="+dir.file("log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+dir.file("enabled_plugins"),
		"RABBITMQ_PLUGINS_EXPAND_DIR="+dir.file("plugins"),
		"RABBITMQ_PID_FILE="+dir.file("pid"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_CONFIG_FILE="+dir.file("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+dir.file("advanced.config"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+dir.file("generated"),
		"ERL_EPMD_PORT="+strconv.Itoa(p.epmd),
		"ERL_EPMD_ADDRESS="+loopback,
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+erlang,
	)
}
