package lockstore

import (
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"
)

// command is what an engineer runs to see the same key: PTTL (-2: no such key,
// -1: never expires) and the value, cut as we cut it. It holds no password:
// redis-cli asks for it.
func (s *Store) command(key string) string {
	arg, quoted := cliArgument(key)
	client := s.cli(s.dataHost(), s.opts.User, s.opts.Password != "")
	if s.opts.Mode == ModeCluster {
		client += " -c"
	}
	if s.opts.DB != 0 {
		client += fmt.Sprintf(" -n %d", s.opts.DB)
	}
	if quoted {
		client += " --quoted-input"
	}
	return fmt.Sprintf("%s%[2]s PTTL %[3]s; %[2]s GETRANGE %[3]s 0 %[4]d", s.findMaster(), client, arg, MaxValue-1)
}

// findMaster sets $1 and $2 to the master's address in mode sentinel.
func (s *Store) findMaster() string {
	if s.opts.Mode != ModeSentinel {
		return ""
	}
	sentinel := s.cli(hostFlags(s.opts.Addresses[0]), s.opts.SentinelUser, s.opts.SentinelPassword != "")
	return fmt.Sprintf("set -- $(%s SENTINEL GET-MASTER-ADDR-BY-NAME %s); ", sentinel, shellWord(s.opts.MasterName))
}

func (s *Store) dataHost() string {
	if s.opts.Mode == ModeSentinel {
		return `-h "$1" -p "$2"`
	}
	return hostFlags(s.opts.Addresses[0])
}

func (s *Store) cli(host, user string, password bool) string {
	client := "redis-cli " + host
	if s.opts.TLS != nil {
		client += " --tls"
	}
	if user != "" {
		client += " --user " + shellWord(user)
	}
	if password {
		client += " --askpass"
	}
	return client
}

// hostFlags takes an address that check has found to be host:port.
func hostFlags(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("-h %s -p %s", shellWord(host), shellWord(port))
}

// cliArgument writes a key so that a shell and redis-cli pass on exactly its
// bytes. quoted: redis-cli has to be run with --quoted-input, because a byte of
// the key cannot be seen, or (NUL) cannot be an argument of a program at all.
func cliArgument(key string) (arg string, quoted bool) {
	if utf8.ValidString(key) && strings.IndexFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return shellWord(key), false
	}
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c < ' ' || c > '~' || c == '"' || c == '\\' || c == '\'':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `'"` + b.String() + `"'`, true
}

// shellWord quotes s for a POSIX shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_-.:/@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
