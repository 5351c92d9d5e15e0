package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab"
)

// DemoOptions describe the demo.
type DemoOptions struct {
	// Listen is the console's address; another port is taken when this one is in use.
	Listen string
	// Program is how the user calls this program, for the commands to try.
	Program string
	// Language of what is printed.
	Language flow.Language
	// Logger is mandatory.
	Logger *slog.Logger
	// Out receives the address, the samples and the commands to try. Mandatory.
	Out io.Writer
}

// Demo starts private servers with real traffic, serves the console on them
// until ctx ends, and leaves no process, port or file behind.
func Demo(ctx context.Context, o DemoOptions) (err error) {
	dir, err := os.MkdirTemp("", "idemscope-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(o.Out, flow.T("Starting private MariaDB, Redis and RabbitMQ (about ten seconds) ...", "正在启动私有的 MariaDB、Redis 和 RabbitMQ（约十秒）……").In(o.Language))
	file := filepath.Join(dir, "idemscope.yaml")
	l, err := lab.Start(ctx, lab.Options{Listen: freeAddress(o.Listen), Logger: o.Logger, Prepare: makeTap(file)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	if err := os.WriteFile(file, l.Config(), 0o600); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	traffic := make(chan error, 1)
	go func() { traffic <- l.Run(ctx) }()
	err = Serve(ctx, ServeOptions{Config: file, Logger: o.Logger, Started: func(url string) { welcome(o, l, url, file) }})
	cancel()
	return errors.Join(err, <-traffic)
}

// makeTap makes the tap of the lab's broker, so that it sees the first message.
func makeTap(file string) func(context.Context, []byte) error {
	return func(ctx context.Context, text []byte) error {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		var said strings.Builder
		exit, err := Tap(ctx, TapOptions{Config: file, Action: TapApply, MaxAge: time.Hour, MaxBytes: 50_000_000, Language: flow.English, Out: &said})
		if err == nil && exit != 0 {
			err = fmt.Errorf("make the tap: %s", said.String())
		}
		return err
	}
}

// freeAddress returns the wanted address, or one with a free port when it is taken.
func freeAddress(wanted string) string {
	listener, err := net.Listen("tcp", wanted)
	if err != nil {
		host, _, splitErr := net.SplitHostPort(wanted)
		if splitErr != nil {
			return wanted
		}
		return net.JoinHostPort(host, "0")
	}
	_ = listener.Close()
	return wanted
}

// welcome prints what to open and what to try.
func welcome(o DemoOptions, l *lab.Lab, url, file string) {
	say := func(en, zh string, args ...any) { fmt.Fprintln(o.Out, flow.T(en, zh, args...).In(o.Language)) }
	for _, missing := range l.Missing {
		say("\nRunning without a broker: %v", "\n没有消息代理：%v", missing)
	}
	say("\nReady. Open %s/   (metrics: %s/metrics)", "\n已就绪。请打开 %s/  （指标：%s/metrics）", url, url)
	say("\nLook one up in another terminal:", "\n在另一个终端中查询：")
	samples := l.Samples()
	for i, s := range samples {
		if i < 2 {
			fmt.Fprintf(o.Out, "  %s lookup --config %s %s %s\n", o.Program, file, shellWord(s.BizType), shellWord(s.BizID))
		}
	}
	say("\nSamples, and the verdict that each should show:", "\n样例及其应有的结论：")
	table := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	for _, s := range samples {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", flow.Visible(s.BizType), short(flow.Visible(s.BizID)), s.Verdict, s.Layer, s.Story.In(o.Language))
	}
	_ = table.Flush()
	say("\nReal traffic goes on until Ctrl-C.", "\n真实流量会持续，按 Ctrl-C 结束。")
}

// short keeps an id in its column.
func short(s string) string {
	const limit = 44
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
