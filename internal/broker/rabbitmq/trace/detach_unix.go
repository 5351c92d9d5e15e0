//go:build unix

package trace

import (
	"os/exec"
	"syscall"
)

// detach gives the guard a session of its own: what ends our terminal or our
// process group does not reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
