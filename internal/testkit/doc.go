// Package testkit gives tests real MariaDB, Redis and RabbitMQ servers: one private server per package, and a fresh
// database, db number or vhost per call, which is removed when the test ends. It also has a TCP proxy for tests of
// slow and absent servers, and a helper that waits for a condition.
//
// It is not for mocks, and not for servers that somebody else runs. A server program that is missing fails the test;
// nothing is skipped.
package testkit
