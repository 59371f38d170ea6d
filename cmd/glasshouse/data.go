package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"glasshouse/sandbox"
)

// dataSets is the value of --data: the paths that sandboxes can read, by their name in /data.
type dataSets map[string]string

// Type returns the placeholder for the flag's value in the help.
func (d *dataSets) Type() string { return "NAME=PATH" }

func (d *dataSets) String() string { return formatMap(*d) }

// Set adds the data sets of a comma-separated list and checks that their paths exist.
func (d *dataSets) Set(text string) error {
	if *d == nil {
		*d = dataSets{}
	}
	for item := range strings.SplitSeq(text, ",") {
		name, path, _ := strings.Cut(item, "=")
		if problem := sandbox.CheckPath(name); problem != "" || path == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q must be NAME=PATH, and NAME a file name without /", item)
		}
		path, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("data set %s: %w", name, err)
		}
		(*d)[name] = path
	}
	return nil
}
