package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"idemscope/internal/config"
	"idemscope/internal/draft"
	"idemscope/internal/flow"
)

// InitOptions describe the stores to look at and where the draft goes.
type InitOptions struct {
	// MySQL is user@host:port/database, or user@/path/to/socket/database; Redis
	// [user@]host:port[/db]; RabbitMQ http://user@host:15672. An empty one is not looked at.
	MySQL, Redis, RabbitMQ string
	// Vhost of RabbitMQ; empty means "/".
	Vhost string
	// MySQLPassword, RedisPassword and RabbitMQPassword are never written down.
	MySQLPassword, RedisPassword, RabbitMQPassword Credential
	// Output is the file to write. Mandatory.
	Output string
	// Yes writes without a question, Force over an existing file.
	Yes, Force bool
	// Terminal: somebody can answer a question at In.
	Terminal bool
	In       io.Reader
	// Language of the report and of the comments in the file.
	Language flow.Language
	// Out receives the report. Mandatory.
	Out io.Writer
}

// Credential is a password and where it comes from.
type Credential struct {
	// Variable is the name of the environment variable, Password what it holds.
	Variable string
	Password config.Secret
	// File is used instead when it is set.
	File string
}

// NewCredential names a password that was read from a variable or is in a file;
// file may be empty.
func NewCredential(variable, password, file string) Credential {
	return Credential{Variable: variable, Password: config.Secret(password), File: file}
}

// Errors of usage; their texts name the remedy.
var (
	errNothingNamed = errors.New("nothing to look at: name the database with --mysql user@host:port/database, and --redis and --rabbitmq where there are any")
	errNobodyToAsk  = errors.New("nobody can be asked whether to write the file, because this is no terminal: add --yes")
)

// Exit codes of init.
const (
	exitDone    = 0
	exitPart    = 1
	exitRefused = 4
)

// initLimit bounds the whole look at the stores.
const initLimit = 2 * time.Minute

// Init looks at the stores, reports what it found and writes a first
// configuration. It returns the exit code: 0 done, 1 a part was done, 4 the file
// exists or the answer was no. Errors are usage: exit code 2.
func Init(ctx context.Context, o InitOptions) (exit int, err error) {
	targets, err := o.targets()
	if err != nil {
		return 0, err
	}
	if !o.Yes && !o.Terminal {
		return 0, errNobodyToAsk
	}
	if _, err := os.Lstat(o.Output); err == nil && !o.Force {
		o.say(flow.T("%s exists and is left as it is: name another file with --output, or add --force", "%s 已存在，未作改动：请用 --output 指定其他文件，或加上 --force", o.Output))
		return exitRefused, nil
	}
	limited, cancel := context.WithTimeout(ctx, initLimit)
	defer cancel()
	facts, err := collect(limited, targets)
	if err != nil {
		return 0, err
	}
	plan := draft.Draw(facts)
	text := plan.File(o.Language)
	if err := usable(plan, o.Output, text); err != nil {
		return 0, err
	}
	plan.Report(o.Out, o.Language)
	if !o.Yes && !o.agreed(ctx) {
		o.say(flow.T("Nothing was written.", "没有写入任何文件。"))
		return exitRefused, nil
	}
	if err := writeDraft(o.Output, text, o.Force); err != nil {
		return 0, err
	}
	o.closing(plan, targets)
	if !plan.Complete() {
		return exitPart, nil
	}
	return exitDone, nil
}

func (o InitOptions) say(t flow.Text) { fmt.Fprintln(o.Out, t.In(o.Language)) }

// usable makes sure that a draft with a flow is a valid configuration, whatever
// the stores hold. Variables and files of passwords are not looked at.
func usable(plan *draft.Plan, name string, text []byte) error {
	if !plan.Usable() {
		return nil
	}
	anything := func(string) (string, bool) { return "x", true }
	c, err := config.Parse(name, text, anything, func(string) ([]byte, error) { return []byte("x"), nil })
	if err != nil {
		return fmt.Errorf("the draft is not a valid configuration, which is a fault of this program; nothing was written: %w", err)
	}
	s, err := openStores(c)
	if err != nil {
		return fmt.Errorf("the draft cannot be used, which is a fault of this program; nothing was written: %w", err)
	}
	return s.close()
}

// agreed asks. The end of the input counts as no.
func (o InitOptions) agreed(ctx context.Context) bool {
	fmt.Fprint(o.Out, "\n"+flow.T("Write this to %s? [y/N] ", "写入 %s？[y/N] ", o.Output).In(o.Language))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(o.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false
	case line := <-answer:
		return line == "y" || line == "yes" || line == "是"
	}
}

// writeDraft never touches an existing file without force, not even one that
// has appeared a moment ago; with force it replaces it in one step.
func writeDraft(path string, text []byte, force bool) (err error) {
	if !force {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return errors.Join(fmt.Errorf("write the configuration: %w", err), os.Remove(path))
		}
		return nil
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".idemscope-*.yaml")
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the configuration: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// closing says what was written, what is missing, and what to do next.
func (o InitOptions) closing(plan *draft.Plan, t targets) {
	fmt.Fprintln(o.Out)
	o.say(flow.T("Written to %s. Each guess has its reason above it; search for CHECK.", "已写入 %s。每个推测上方都有依据；请搜索“请核对”。", o.Output))
	if !plan.Usable() {
		o.say(flow.T("It is not complete: write a ledger and a flow first.", "文件尚不完整：请先编写一个幂等表和一个流程。"))
	}
	for _, name := range t.variables() {
		o.say(flow.T("Set the variable %s where idemscope runs: the file holds no password.", "请在运行 idemscope 的环境中设置变量 %s：文件中不含密码。", name))
	}
	o.say(flow.T("Next: idemscope config check --config %[1]s; idemscope doctor --config %[1]s", "下一步：idemscope config check --config %[1]s；idemscope doctor --config %[1]s", shellWord(o.Output)))
}
