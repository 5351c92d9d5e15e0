package rabbitmq

import "strings"

// command is what an engineer runs to see the same queues: curl asks for the
// password.
func (b *Broker) command(names ...string) string {
	command := "curl -sg -w '\\n' -u " + quoted(b.opts.User)
	for _, name := range names {
		command += " " + quoted(b.url(columns, "queues", b.opts.Vhost, name))
	}
	return command
}

// quoted makes s one word for a POSIX shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
