// Package config turns the YAML configuration file into validated, typed
// values: defaults are filled in, variables and secret files are read, time
// zones and certificates are resolved, and every name that one part refers to
// exists. It is the only package that reads the environment and files; all
// problems of a file are reported at once, each with file, line, column, the
// key and the remedy.
//
// An optional key that is empty or has no value counts as left out.
//
// It is not a place for connections: nothing is dialled and no store is asked.
// What a table's preset and columns mean is judged by the ledger; At gives the
// place in the file for such later errors.
package config
