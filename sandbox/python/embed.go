// Package python carries the Python that runs inside the wall. The wall stage
// writes it into the sandbox's read-only root.
package python

import (
	"embed"
	"io/fs"
)

//go:embed guest/*.py
var files embed.FS

// Guest returns the files that run inside, by base name.
func Guest() (map[string][]byte, error) {
	out := map[string][]byte{}
	names, err := fs.Glob(files, "guest/*.py")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if out[name[len("guest/"):]], err = files.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
