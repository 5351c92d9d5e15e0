// Package app sets the program up in one straight line: configuration, stores,
// look-ups, exporter, console; and stops them in reverse order. A subcommand
// calls one function of it.
//
// It is not a place for logic: it knows every part and decides nothing that a
// part could decide itself.
package app
