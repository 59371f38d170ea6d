// Package python embeds the Python code that runs in a guest. The launcher
// writes it into the read-only root of the sandbox.
package python

import (
	"embed"
	"io/fs"
)

//go:embed guest/*.py
var files embed.FS

// Guest returns the files of the guest by base name.
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
