package app

import "runtime/debug"

// Version is set by the linker when a release is built.
var Version = "dev"

// VersionLine names the program, its version and what it was built with.
func VersionLine() string {
	line := "idemscope " + Version
	if info, ok := debug.ReadBuildInfo(); ok {
		line += " (" + info.GoVersion + ")"
	}
	return line
}
