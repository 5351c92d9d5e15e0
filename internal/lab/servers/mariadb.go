package servers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const mariaDBStartTimeout = 60 * time.Second

// MariaDBOptions says how a private MariaDB is set up.
type MariaDBOptions struct {
	// Grants gives the server users and privileges: root has an empty password and CREATE USER works. It takes a few
	// seconds longer. Without it everybody may do everything, and events and stored procedures are missing.
	Grants bool
	// Args follow the package's own arguments and win over them, for example "--read-only". May be empty.
	Args []string
}

// MariaDB is a running private MariaDB. Log in as root with an empty password.
type MariaDB struct {
	Addr   string // host:port
	Socket string // path of the Unix socket
	Pid    int
	run    *run
}

// StartMariaDB starts a MariaDB with time zone UTC and utf8mb4, and returns when it answers. ctx bounds the start
// only. A missing program is a NotInstalled.
func StartMariaDB(ctx context.Context, opts MariaDBOptions) (*MariaDB, error) {
	return startMariaDB(ctx, opts, FreePort)
}

// Stop ends the server and removes its files. It takes at most some seconds and may be called again.
func (m *MariaDB) Stop() error { return m.run.stop() }

func startMariaDB(ctx context.Context, opts MariaDBOptions, ports portSource) (*MariaDB, error) {
	program, err := findMariaDB(searchPath())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, mariaDBStartTimeout)
	defer cancel()
	return retryPorts(func() (*MariaDB, error) { return mariaDBAttempt(ctx, program, opts, ports) })
}

func mariaDBAttempt(ctx context.Context, program string, opts MariaDBOptions, ports portSource) (_ *MariaDB, err error) {
	port, err := ports()
	if err != nil {
		return nil, err
	}
	dir, err := newWorkDir("mariadb")
	if err != nil {
		return nil, err
	}
	m := &MariaDB{Addr: address(port), Socket: dir.file("s"), run: &run{dir: dir}}
	defer func() {
		if err != nil {
			_ = m.Stop()
		}
	}()
	if err := prepareData(ctx, m.run, opts.Grants); err != nil {
		return nil, err
	}
	c, err := m.run.start("mariadbd", exec.Command(program, mariaDBArgs(port, dir, opts)...))
	if err != nil {
		return nil, err
	}
	m.Pid = c.pid
	if err := c.await(ctx, func(ctx context.Context) error { return mariaDBIsOurs(ctx, m.Socket, dir.file("pid"), c.pid) }); err != nil {
		return nil, err
	}
	return m, nil
}

// prepareData makes the data directory. An empty one is enough for a server that skips the grant tables.
func prepareData(ctx context.Context, r *run, grants bool) error {
	if err := os.Mkdir(r.dir.file("data"), 0o700); err != nil || !grants {
		return err
	}
	program, err := find(searchPath(), "mariadb-install-db", "mysql_install_db")
	if err != nil {
		return err
	}
	args := append([]string{"--no-defaults"}, asRoot()...)
	args = append(args, "--datadir="+r.dir.file("data"), "--tmpdir="+r.dir.path,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	c, err := r.start("mariadb-install-db", exec.Command(program, args...))
	if err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("mariadb-install-db: %w", ctx.Err())
	}
	if !c.cmd.ProcessState.Success() {
		return fmt.Errorf("mariadb-install-db: %s; its log ends with:\n%s", c.cmd.ProcessState, tail(c.output()))
	}
	return nil
}

// mariaDBArgs keeps the server small and quick: nothing has to survive a crash. --no-defaults must come first.
func mariaDBArgs(port int, dir *workDir, opts MariaDBOptions) []string {
	args := append([]string{"--no-defaults"}, asRoot()...)
	args = append(args,
		"--datadir="+dir.file("data"), "--socket="+dir.file("s"), "--pid-file="+dir.file("pid"), "--tmpdir="+dir.path,
		"--port="+strconv.Itoa(port), "--bind-address="+loopback, "--skip-name-resolve", "--skip-log-bin",
		"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0",
		"--skip-innodb-doublewrite", "--character-set-server=utf8mb4", "--default-time-zone=+00:00")
	if !opts.Grants {
		args = append(args, "--skip-grant-tables")
	}
	return append(args, opts.Args...)
}

// asRoot is the word that MariaDB demands before it runs as root.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// mariaDBIsOurs asks over the socket in our own directory, where no other server can answer. MariaDB ends at the
// start when it cannot bind its port, so a child that answers here owns the port as well.
func mariaDBIsOurs(ctx context.Context, socket, pidFile string, pid int) error {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Logger = "unix", socket, "root", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var path string
	if err := db.QueryRowContext(ctx, "SELECT @@pid_file").Scan(&path); err != nil {
		return err
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	if path != pidFile || strings.TrimSpace(string(text)) != strconv.Itoa(pid) {
		return fmt.Errorf("the server on %s is not process %d", socket, pid)
	}
	return nil
}
