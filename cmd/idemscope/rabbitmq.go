package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"idemscope/internal/app"
)

type rabbitCommand struct {
	Tap   tapCommand        `cmd:"" help:"A stream of our own that shows what is published and dead-lettered."`
	Trace traceCommand      `cmd:"" help:"Count deliveries per key for some minutes. Costs every message of the vhost."`
	Guard traceGuardCommand `cmd:"" name:"trace-guard" hidden:"" help:"Turns tracing off when the process that armed it is gone."`
}

type tapCommand struct {
	Plan   tapPlanCommand   `cmd:"" help:"Show what would be made, and what it costs. Changes nothing."`
	Apply  tapApplyCommand  `cmd:"" help:"Make the tap. It may be repeated."`
	Remove tapRemoveCommand `cmd:"" help:"Show what would be removed; with --execute, remove it."`
}

// tapSize are the flags that bound the stream.
type tapSize struct {
	Broker   string        `help:"The broker, if several have a tap." placeholder:"NAME"`
	MaxAge   time.Duration `help:"How long the stream keeps a message." default:"24h"`
	MaxBytes byteSize      `help:"How large the stream may grow." default:"1GB" placeholder:"SIZE"`
	JSON     bool          `help:"Print the plan as JSON."`
}

func (f tapSize) run(s *surroundings, action app.TapAction) (err error) {
	s.exit, err = app.Tap(s.ctx, app.TapOptions{
		Config: s.config, Broker: f.Broker, Action: action, MaxAge: f.MaxAge, MaxBytes: int64(f.MaxBytes), JSON: f.JSON, Language: s.lang, Out: s.out,
	})
	return err
}

type tapPlanCommand struct{ tapSize }

// Run prints the plan and leaves the exit code: 0 fine, 3 cannot tell.
func (c tapPlanCommand) Run(s *surroundings) error { return c.run(s, app.TapPlan) }

type tapApplyCommand struct{ tapSize }

// Run makes the tap and leaves the exit code: 0 done, 1 only a part was done, 3 cannot tell.
func (c tapApplyCommand) Run(s *surroundings) error { return c.run(s, app.TapApply) }

type tapRemoveCommand struct {
	Broker  string `help:"The broker, if several have a tap." placeholder:"NAME"`
	Execute bool   `help:"Remove it, with what the stream holds."`
	JSON    bool   `help:"Print the plan as JSON."`
}

// Run leaves the exit code as tapApplyCommand does.
func (c tapRemoveCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Tap(s.ctx, app.TapOptions{
		Config: s.config, Broker: c.Broker, Action: app.TapRemove, Execute: c.Execute, JSON: c.JSON, Language: s.lang, Out: s.out,
	})
	return err
}

type traceCommand struct {
	Broker string        `help:"The broker, if several have a trace." placeholder:"NAME"`
	For    time.Duration `help:"How long: 10s to 10m." default:"3m"`
	Yes    bool          `help:"The cost is accepted."`
	JSON   bool          `help:"Print the counts as JSON."`
}

// Run arms a trace and leaves the exit code: 0 fine, 1 it ended early, 3 it could
// not be armed, 4 its cost was not accepted.
func (c traceCommand) Run(s *surroundings) (err error) {
	s.exit, err = app.Trace(s.ctx, app.TraceOptions{
		Config: s.config, Broker: c.Broker, For: c.For, Yes: c.Yes, JSON: c.JSON, Language: s.lang, Logger: s.logger, Out: s.out,
	})
	return err
}

type traceGuardCommand struct{}

// Run guards a trace. It is told what to do through its standard input.
func (traceGuardCommand) Run(*surroundings) error { return app.TraceGuard(os.Stdin, os.Stdout) }

// byteSize is a number of bytes, with or without a unit: 500MB, 2GB.
type byteSize int64

// UnmarshalText reads digits and a unit.
func (b *byteSize) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")
	unit, known := map[string]int64{"": 1, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000}[strings.ToUpper(strings.TrimSpace(string(text)[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > 1_000_000_000_000_000/unit {
		return fmt.Errorf("%q is no size; write 500MB or 2GB", text)
	}
	*b = byteSize(n * unit)
	return nil
}
