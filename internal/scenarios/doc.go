// Package scenarios is a suite of tests: failures that people met in the field, set up on real servers and looked up
// as an engineer on call would. Each scenario leaves in MariaDB, Redis and RabbitMQ what the incident left there, and
// says what the answer must be, and what it must not claim. What no store can show stands in docs/limits.md.
//
// It is not for the fine print of single rules: those have their tables in internal/verdict.
package scenarios
