// Package web holds the templates and static files of the console, embedded in
// the binary, so that a page needs nothing from anywhere else.
//
// It is not a place for logic: package console parses, renders and serves them.
package web

import "embed"

// Templates are the pages and their parts, under templates/.
//
//go:embed templates
var Templates embed.FS

// Static are the files that browsers load beside a page, under static/.
//
//go:embed static
var Static embed.FS
