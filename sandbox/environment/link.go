package environment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// isOurFile reports whether a name in a folder of packages belongs to pip or to an extension of Glasshouse.
// These files are not copied: an extension fits only the version of Glasshouse that built it.
func isOurFile(name string) bool {
	return name == "pip" || strings.HasPrefix(name, "pip-") && strings.HasSuffix(name, ".dist-info") ||
		strings.HasPrefix(name, "recorder_fast") || strings.HasPrefix(name, "syscall_batch")
}

// linkPackages links the packages of one folder into another, or copies them where the file system does not
// allow hard links. Versions can share files, because uv replaces files and never writes into one.
func linkPackages(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if isOurFile(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			err = os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			var goal string
			if goal, err = os.Readlink(path); err == nil {
				err = errors.Join(ignoreMissing(os.Remove(target)), os.Symlink(goal, target))
			}
		case d.Type().IsRegular():
			if err = errors.Join(ignoreMissing(os.Remove(target)), os.Link(path, target)); err != nil {
				err = copyFile(path, target)
			}
		}
		return err
	})
}

// copyFile copies a file with its modification time, because Python compares that time with the compiled file.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
