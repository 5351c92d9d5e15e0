// Package servers starts private MariaDB, Redis and RabbitMQ servers out of the programs that are installed on this
// machine. The demo and the tests run on them.
//
// Each server listens on a free loopback port, keeps everything that it writes in a temporary directory of its own,
// and is proven to be a child of this process before it is handed out. Stop ends it and removes the directory. When
// this process dies without a Stop, even by kill -9, the kernel ends the server with it (Linux), and the next start
// by the same user removes the directory that was left.
//
// The package is not for production and not for servers that somebody else runs: it never connects to, configures
// or stops a server that it has not started. It installs nothing; a missing program is reported as NotInstalled.
package servers
