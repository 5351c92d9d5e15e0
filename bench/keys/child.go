package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"idemscope/internal/lockstore"
)

// runChild is a process that does nothing but sweep, as idemscope does beside
// the consumers: a line on its input makes it go on, the next one stops it. It
// answers each with a line.
func runChild(ctx context.Context, addr string) error {
	store, err := open(addr)
	if err != nil {
		return err
	}
	defer store.Close()
	sweep := sweepAt(store, rate)
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		sweepCtx, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for sweepCtx.Err() == nil {
				if _, err := sweep.Run(sweepCtx, func(lockstore.TimedKey) {}); err != nil && sweepCtx.Err() == nil {
					fmt.Fprintln(os.Stderr, "sweep:", err)
					return
				}
			}
		}()
		fmt.Println("goes on")
		orders.Scan()
		stop()
		<-ended
		fmt.Println("stopped")
	}
	return orders.Err()
}

func open(addr string) (*lockstore.Store, error) {
	return lockstore.New(lockstore.Options{Name: "bench", Addresses: []string{addr}, Timeout: 10 * time.Second})
}

// child is the sweeping process.
type child struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

func startChild(ctx context.Context, addr string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, "-sweep", addr)}
	c.cmd.Stderr = os.Stderr
	if c.orders, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.answers = bufio.NewScanner(out)
	return c, c.cmd.Start()
}

// turn makes the child go on, or stop.
func (c *child) turn() error {
	if _, err := fmt.Fprintln(c.orders); err != nil {
		return err
	}
	if !c.answers.Scan() {
		return fmt.Errorf("the sweeping process ended: %v", c.answers.Err())
	}
	return nil
}

func (c *child) end() error {
	_ = c.orders.Close()
	return c.cmd.Wait()
}
