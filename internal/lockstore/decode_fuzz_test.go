package lockstore

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzCounters: whatever consumers put into a hash, a count is what its digits
// say, and everything else is a contract error that repeats none of it.
func FuzzCounters(f *testing.F) {
	for _, v := range []string{"0", "18446744073709551615", "18446744073709551616", "-1", "1.5", "", " 1", "1\n", "secret-token", "\xff"} {
		f.Add("pay", v)
	}
	f.Add("\x1b[31m", "x")
	f.Fuzz(func(t *testing.T, bizType, value string) {
		var c Counters
		values := make([]any, len(fieldNames()))
		values[0] = value
		c.add("app:", bizType, values)
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case len(c.Types) != 1 || c.Types[0].BizType != bizType:
			t.Fatalf("%q became %+v", bizType, c.Types)
		case err == nil && (c.Types[0].Attempt != n || len(c.ContractErrors) > 0):
			t.Errorf("%q was read as %d, %q", value, c.Types[0].Attempt, c.ContractErrors)
		case err != nil && (c.Types[0].Attempt != 0 || len(c.ContractErrors) != 1):
			t.Errorf("%q was read as %d, %q", value, c.Types[0].Attempt, c.ContractErrors)
		}
		for _, message := range c.ContractErrors {
			if strings.IndexFunc(message, unicode.IsControl) >= 0 || !utf8.ValidString(message) {
				t.Errorf("%q makes the message %q", bizType, message)
			}
			if len(value) > 8 && strings.Contains(message, value) && !strings.Contains(bizType, value) {
				t.Errorf("a value is repeated: %q", message)
			}
		}
	})
}

// FuzzInfoField: a field of INFO is what stands after its name in its own line.
func FuzzInfoField(f *testing.F) {
	f.Add("# Server\r\nrun_id:abc\r\nrole:master\r\n", "run_id")
	f.Add("run_id:\nrun_id:2", "run_id")
	f.Add("xrun_id:1\r\n", "run_id")
	f.Add(":", "")
	f.Fuzz(func(t *testing.T, info, name string) {
		got := infoField(info, name)
		if strings.Contains(got, "\n") || strings.HasSuffix(got, "\r") {
			t.Errorf("%q of %q is %q", name, info, got)
		}
		if got != "" && !strings.Contains("\n"+info, "\n"+name+":"+got) {
			t.Errorf("%q of %q is said to be %q", name, info, got)
		}
	})
}

// FuzzShellWord asks a real shell what it makes of a word in the commands that
// people copy.
func FuzzShellWord(f *testing.F) {
	for _, s := range []string{"", "plain", "it's", "$(reboot)", "`id`", "a b", "\\", "!!", "~", "-n", "订单", "{a,b}", "*", "a\nb", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		arg, quoted := cliArgument(s)
		if strings.IndexFunc(arg, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || !utf8.ValidString(arg) {
			t.Fatalf("%q is written as %q", s, arg)
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+arg).Output()
		if err != nil {
			t.Fatalf("%q written as %s: %v", s, arg, err)
		}
		back := string(out)
		if quoted {
			// What redis-cli --quoted-input does with it.
			if back, err = strconv.Unquote(back); err != nil {
				t.Fatalf("%q is written as %s: %v", s, arg, err)
			}
		}
		if back != s {
			t.Errorf("%q is written as %s, which is %q to the program", s, arg, back)
		}
	})
}
