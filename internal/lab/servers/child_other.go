//go:build unix && !linux

package servers

import "syscall"

// childAttr puts the child in a process group of its own, so that Ctrl-C on the terminal reaches us and not the
// server. Only Linux can tie the child's life to ours.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
