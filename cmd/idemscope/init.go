package main

import (
	"os"

	"idemscope/internal/app"
)

type initCommand struct {
	MySQL                string `name:"mysql" help:"The database: user@host:port/database, or user@/path/to/mysqld.sock/database. The password comes from the variable MYSQL_PASSWORD." placeholder:"TARGET"`
	MySQLPasswordFile    string `name:"mysql-password-file" help:"A file with the password instead." placeholder:"FILE"`
	Redis                string `help:"The Redis: host:port, host:port/db or user@host:port/db. The password comes from REDIS_PASSWORD." placeholder:"TARGET"`
	RedisPasswordFile    string `help:"A file with the password instead." placeholder:"FILE"`
	RabbitMQ             string `name:"rabbitmq" help:"The management API: http://user@host:15672. The password comes from RABBIT_PASSWORD." placeholder:"URL"`
	Vhost                string `help:"The vhost of RabbitMQ." default:"/"`
	RabbitMQPasswordFile string `name:"rabbitmq-password-file" help:"A file with the password instead." placeholder:"FILE"`
	Output               string `help:"The file to write." default:"idemscope.yaml" placeholder:"FILE"`
	Yes                  bool   `help:"Write without asking."`
	Force                bool   `help:"Replace a file that exists."`
}

// Run looks, reports and writes, and leaves the exit code: 0 done, 1 only a
// part was done, 4 nothing was written.
func (c initCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Init(s.ctx, app.InitOptions{
		MySQL: c.MySQL, Redis: c.Redis, RabbitMQ: c.RabbitMQ, Vhost: c.Vhost,
		MySQLPassword:    credential("MYSQL_PASSWORD", c.MySQLPasswordFile),
		RedisPassword:    credential("REDIS_PASSWORD", c.RedisPasswordFile),
		RabbitMQPassword: credential("RABBIT_PASSWORD", c.RabbitMQPasswordFile),
		Output:           c.Output, Yes: c.Yes, Force: c.Force, Terminal: terminal(os.Stdin), In: os.Stdin, Language: s.lang, Out: s.out,
	})
	return err
}

// credential reads the environment, so that no password stands in the list of
// processes.
func credential(variable, file string) app.Credential {
	return app.NewCredential(variable, os.Getenv(variable), file)
}

// terminal reports whether somebody may sit at the other end of f.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
