package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCleanModule(t *testing.T) {
	got, err := check(module(t, map[string]string{
		"internal/flow/a.go":                "package flow\n",
		"internal/ledger/a.go":              "package ledger\n\nimport (\n\t_ \"database/sql\"\n\t_ \"idemscope/internal/flow\"\n)\n",
		"internal/ledger/a_test.go":         "package ledger\n\nimport _ \"idemscope/internal/testkit\"\n",
		"internal/testkit/a.go":             "package testkit\n\nimport \"os\"\n\nvar _ = os.Getenv\n",
		"internal/testkit/helper/main.go":   "package main\n\nimport _ \"idemscope/internal/testkit\"\n",
		"internal/app/a.go":                 "package app\n\nimport _ \"idemscope/internal/flow\"\n",
		"onlytests/a_test.go":               "package onlytests\n\nimport _ \"idemscope/internal/testkit\"\n",
		"internal/broker/rabbitmq/tap/a.go": "package tap\n\nimport _ \"github.com/rabbitmq/amqp091-go\"\n",
		"internal/lockstore/getenvlike.go":  "package lockstore\n\ntype none struct{}\n\nfunc (none) Getenv() {}\n\nfunc f(os none) { os.Getenv() }\n",
	}))
	if err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBrokenModule(t *testing.T) {
	got, err := check(module(t, map[string]string{
		"internal/flow/a.go":        "package flow\n",
		"web/a.go":                  "package web\n",
		"console/a.go":              "package console\n",
		"exporter/a.go":             "package exporter\n\nimport (\n\t_ \"github.com/redis/go-redis/v9\"\n\t_ \"idemscope/console\"\n)\n",
		"exporter/other.go":         "//go:build windows\n\npackage exporter\n\nimport _ \"idemscope/web\"\n",
		"internal/flow/b.go":        "package flow\n\nimport env \"os\"\n\nvar _ = env.Getenv(\"HOME\")\n",
		"internal/verdict/a.go":     "package verdict\n\nimport _ \"database/sql/driver\"\n",
		"internal/lockstore/a.go":   "package lockstore\n\nimport _ \"idemscope/internal/testkit\"\n",
		"internal/lab/servers/a.go": "package servers\n\nimport _ \"idemscope/internal/flow\"\n",
		"newroom/a.go":              "package newroom\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	answers := "internal/flow, internal/history, internal/ledger, internal/lockstore, internal/broker, internal/dossier, internal/verdict, internal/timeline, internal/answer, internal/doctor"
	want := []string{
		`exporter/a.go:4: import "github.com/redis/go-redis/v9": internal/lockstore alone talks to Redis`,
		`exporter/a.go:5: import "idemscope/console": exporter imports only ` + answers,
		`exporter/other.go:5: import "idemscope/web": exporter imports only ` + answers,
		`internal/flow/b.go:5: os.Getenv: internal/config alone reads the environment`,
		`internal/lab/servers/a.go:3: import "idemscope/internal/flow": internal/lab/servers imports nothing of this module`,
		`internal/lockstore/a.go:3: import "idemscope/internal/testkit": internal/lockstore imports only internal/flow, internal/history`,
		`internal/verdict/a.go:3: import "database/sql/driver": internal/ledger alone talks to MySQL`,
		`newroom: unknown room: add it to scripts/walls/rooms.go with what it may import`,
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got:")
		for _, line := range got {
			t.Log(line)
		}
	}
}

func TestBrokenFileIsAnError(t *testing.T) {
	if got, err := check(module(t, map[string]string{"web/a.go": "package web\n\nfunc {\n"})); err == nil {
		t.Errorf("no error, but %q", got)
	}
}

// TestTableIsClosed checks that the table names only packages that it knows, and has no circle.
func TestTableIsClosed(t *testing.T) {
	var walk func(room string, path []string)
	walk = func(room string, path []string) {
		if slices.Contains(path, room) {
			t.Fatalf("circle: %q", append(path, room))
		}
		below, ok := rooms[room]
		if !ok {
			t.Fatalf("%q is not in the table", append(path, room))
		}
		for _, next := range below {
			walk(next, append(path[:len(path):len(path)], room))
		}
	}
	for room := range rooms {
		walk(room, nil)
	}
	for _, list := range append([][]string{envRooms}, guards[0].rooms, guards[1].rooms, guards[2].rooms) {
		for _, room := range list {
			if _, ok := rooms[room]; !ok {
				t.Errorf("%s is not in the table", room)
			}
		}
	}
}

// module writes the files of a module called idemscope.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module idemscope\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
