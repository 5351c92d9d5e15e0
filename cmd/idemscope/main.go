// Command idemscope explains one key of an idempotent consumer across broker,
// Redis and MySQL, and exports what such consumers leave behind as metrics.
//
// It holds no logic: flags, environment and signals become typed options of
// package app, and the process exits in one place.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones work in an image without files

	"github.com/alecthomas/kong"

	"idemscope/internal/flow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exit)
}

// commands is the whole command line.
type commands struct {
	Config   string `help:"Configuration file." default:"idemscope.yaml" env:"IDEMSCOPE_CONFIG" placeholder:"FILE"`
	Lang     string `help:"Language of sentences: en or zh. The default is that of the terminal." env:"IDEMSCOPE_LANG,LC_ALL,LC_MESSAGES,LANG" default:"en" placeholder:"LANG"`
	LogLevel string `help:"Least level to log: debug, info, warn, error. The default is info, in the demo error." enum:",debug,info,warn,error" default:""`

	Serve    serveCommand    `cmd:"" help:"Run the exporter and the console."`
	Lookup   lookupCommand   `cmd:"" help:"Explain one key: broker, Redis and MySQL side by side, with a verdict."`
	Findings findingsCommand `cmd:"" help:"List the keys with a problem: reads the ledgers once, and judges what is stale, failed or unreadable."`
	Doctor   doctorCommand   `cmd:"" help:"Examine tables, Redis and queues: is this set-up able to be idempotent?"`
	Init     initCommand     `cmd:"" help:"Look at a database, a Redis and a broker, and write a first configuration."`
	Janitor  janitorCommand  `cmd:"" help:"Delete or archive old completed records, in small batches."`
	Action   actionCommand   `cmd:"" help:"Release a lock, clear a marker, set a stale record back, or replay a dead letter: one key, one at a time."`
	Check    configCommand   `cmd:"" name:"config" help:"Work on the configuration."`
	RabbitMQ rabbitCommand   `cmd:"" name:"rabbitmq" help:"Make a tap, or arm a trace, of a RabbitMQ."`
	Demo     demoCommand     `cmd:"" help:"Start private servers and traffic, and serve the console on them."`
	Health   healthCommand   `cmd:"" help:"Ask the running service whether it is alive; for container health checks."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// surroundings are what every command may use.
type surroundings struct {
	ctx    context.Context
	config string
	lang   flow.Language
	out    io.Writer
	logger *slog.Logger
	exit   int
}

// Exit codes of the command line, a promise to scripts.
const (
	exitProblem = 1
	exitUsage   = 2
)

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("idemscope"), kong.UsageOnError(), kong.Writers(out, errOut),
		kong.Description("See what happened to one message of an idempotent consumer, and why."),
		kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(errOut, "idemscope:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(errOut, "idemscope: %v; see idemscope --help\n", err)
		return exitUsage
	}
	lang, _ := flow.ParseLanguage(c.Lang)
	s := &surroundings{
		ctx: ctx, config: c.Config, lang: lang, out: out,
		logger: slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level(c.LogLevel, command.Command())})),
	}
	if err := command.Run(s); err != nil {
		fmt.Fprintln(errOut, "idemscope:", err)
		return exitUsage
	}
	return s.exit
}

// level is the least level to log. The demo's terminal belongs to its samples.
func level(flag, command string) slog.Level {
	level := slog.LevelInfo
	if command == "demo" {
		level = slog.LevelError
	}
	if flag != "" {
		// The levels that the flag allows are those that slog knows.
		_ = level.UnmarshalText([]byte(flag))
	}
	return level
}
