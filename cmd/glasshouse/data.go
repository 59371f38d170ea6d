package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// dataSets are the operator's, by the name that they have in /data, as a flag.
type dataSets map[string]string

func (d *dataSets) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*d)) {
		all = append(all, name+"="+(*d)[name])
	}
	return strings.Join(all, ",")
}

// Set takes one NAME=PATH or more, by commas, and looks whether they are there.
func (d *dataSets) Set(text string) error {
	if *d == nil {
		*d = dataSets{}
	}
	for _, one := range strings.Split(text, ",") {
		name, path, _ := strings.Cut(one, "=")
		if wrong := sandbox.CheckPath(name); wrong != "" || path == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q must be NAME=PATH, and NAME a name without /", one)
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
