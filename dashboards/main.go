// Command dashboards writes the Grafana dashboards of idemscope as JSON files into the current folder: `make dashboards`.
// Change a dashboard here, never in its JSON. It is a module of its own, so that what it needs is no dependency of
// idemscope, and no part of the program: Grafana imports the files.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	files, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
}

// generate returns the content of each file by its name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, b := range []*builder{overview(), oneFlow(), cleanup(), itself()} {
		d, err := b.Build()
		if err != nil {
			return nil, fmt.Errorf("build a dashboard: %w", err)
		}
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", *d.Uid, err)
		}
		files[*d.Uid+".json"] = append(text, '\n')
	}
	return files, nil
}
