package servers

import "syscall"

// childAttr puts the child in a process group of its own, so that Ctrl-C on the terminal reaches us and not the
// server, and lets the kernel kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
