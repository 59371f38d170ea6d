// Package python carries the Python that runs inside the wall. The wall stage
// writes it into the sandbox's read-only root.
package python

import (
	"embed"
	"io/fs"
)

//go:embed inside/*.py
var files embed.FS

// Inside returns the files that run inside, by base name.
func Inside() (map[string][]byte, error) {
	out := map[string][]byte{}
	names, err := fs.Glob(files, "inside/*.py")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if out[name[len("inside/"):]], err = files.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
