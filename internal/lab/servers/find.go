package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// NotInstalled says that a server cannot be started because its program is not on this machine.
type NotInstalled struct {
	// Program is what was looked for, for example "mariadbd".
	Program string
	// Install is the command, or the advice, that provides it on this platform.
	Install string
}

// Error names the program and how to get it.
func (e NotInstalled) Error() string {
	return fmt.Sprintf("%s is not installed; install it with: %s", e.Program, e.Install)
}

// packageOf gives the package of each program per package manager.
var packageOf = map[string]struct{ apt, dnf, brew string }{
	"mariadbd":           {"mariadb-server", "mariadb-server", "mariadb"},
	"mariadb-install-db": {"mariadb-server", "mariadb-server", "mariadb"},
	"redis-server":       {"redis-server", "redis", "redis"},
	"rabbitmq-server":    {"rabbitmq-server", "rabbitmq-server", "rabbitmq"},
	"epmd":               {"erlang-base", "erlang-erts", "erlang"},
}

// notInstalled builds the error for a program, with the install line of the platform in goos and of the package
// manager that exists reports.
func notInstalled(program, goos string, exists func(path string) bool) NotInstalled {
	p := packageOf[program]
	switch {
	case goos == "darwin":
		return NotInstalled{program, "brew install " + p.brew}
	case exists("/usr/bin/apt-get"):
		return NotInstalled{program, "sudo apt-get install " + p.apt}
	case exists("/usr/bin/dnf"):
		return NotInstalled{program, "sudo dnf install " + p.dnf}
	}
	return NotInstalled{program, fmt.Sprintf("apt-get install %s (Debian, Ubuntu), dnf install %s (Fedora), brew install %s (macOS)", p.apt, p.dnf, p.brew)}
}

// searchPath is where programs are looked for: PATH, then the places where distributions put servers that an
// ordinary user's PATH leaves out.
func searchPath() []string {
	return append(filepath.SplitList(os.Getenv("PATH")),
		"/usr/sbin", "/usr/local/sbin", "/usr/libexec",
		"/opt/homebrew/bin", "/opt/homebrew/sbin", "/usr/local/opt/rabbitmq/sbin")
}

// find returns the absolute path of the first of names that is in dirs. The names are alternatives for one program;
// the error is a NotInstalled for the first.
func find(dirs []string, names ...string) (string, error) {
	for _, name := range names {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(path) && isProgram(path) {
				return path, nil
			}
		}
	}
	return "", notInstalled(names[0], runtime.GOOS, isProgram)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// findMariaDB prefers the name mariadbd and accepts a mysqld that says that it is MariaDB. MySQL itself is refused:
// it cannot start from an empty directory, and Ubuntu confines it to its own data directory.
func findMariaDB(dirs []string) (string, error) {
	path, err := find(dirs, "mariadbd")
	if err == nil {
		return path, nil
	}
	mysqld, otherErr := find(dirs, "mysqld")
	if otherErr != nil {
		return "", err
	}
	version, _ := exec.Command(mysqld, "--no-defaults", "--version").Output()
	if strings.Contains(string(version), "MariaDB") {
		return mysqld, nil
	}
	return "", NotInstalled{
		Program: "mariadbd",
		Install: err.(NotInstalled).Install + " (" + mysqld + " is MySQL: a private server needs MariaDB, and installing MariaDB may replace MySQL, so use a container or another machine)",
	}
}

// findRabbitMQ returns the real start script. The one in /usr/sbin of Debian and Fedora is a wrapper that changes to
// the user rabbitmq and to the directories of the system's own broker.
func findRabbitMQ(dirs []string) (string, error) {
	return find(append([]string{"/usr/lib/rabbitmq/bin"}, dirs...), "rabbitmq-server")
}

// findEPMD looks in dirs and in the places where Erlang keeps its own copy.
func findEPMD(dirs []string) (string, error) {
	own, _ := filepath.Glob("/usr/lib*/erlang/erts-*/bin")
	return find(append(append(dirs, own...), "/usr/lib/erlang/bin", "/opt/homebrew/opt/erlang/bin", "/usr/local/opt/erlang/bin"), "epmd")
}
