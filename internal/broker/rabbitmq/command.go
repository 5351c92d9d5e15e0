package rabbitmq

import "strings"

// shown are the columns that a person needs to see the same totals.
const shown = "name,messages_ready,messages_unacknowledged,consumers"

// command is what an engineer runs to see the same queues: curl asks for the
// password.
func (b *Broker) command(names ...string) string {
	command := "curl -sg -w '\\n' -u " + quoted(b.opts.User)
	for _, name := range names {
		command += " " + quoted(b.url(shown, "queues", b.opts.Vhost, name))
	}
	return command
}

// quoted makes s one word for a POSIX shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
