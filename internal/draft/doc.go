// Package draft guesses a first configuration from what a database, a Redis and
// a broker hold: which tables are ledgers, what their status words mean, what
// the keys of locks and markers look like, and which queue feeds which flow. Every guess
// says why, and what is uncertain is written as a comment for a person to decide.
//
// It is not a doctor: it does not judge whether a set-up is sound. It asks no
// store anything: its functions take facts and return guesses.
package draft
