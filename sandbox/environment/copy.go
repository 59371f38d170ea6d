package environment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// isOurFile reports whether a name in a folder of packages belongs to pip or to an extension of Glasshouse.
// These files are not copied: an extension fits only the version of Glasshouse that built it.
func isOurFile(name string) bool {
	return name == "pip" || strings.HasPrefix(name, "pip-") && strings.HasSuffix(name, ".dist-info") ||
		isExtension(name)
}

// isExtension reports whether a module or file in a folder of packages is an extension of Glasshouse.
func isExtension(name string) bool {
	return strings.HasPrefix(name, "recorder_fast") || strings.HasPrefix(name, "syscall_batch")
}

// copyPackages copies the packages of one folder into another. Versions share no inode: a hard link would let code that
// can write to a file of one environment change the others. The kernel shares the blocks of copies where the file
// system has reflinks, because os.File copies with copy_file_range.
func copyPackages(ctx context.Context, from, to string) error {
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
			err = copyFile(path, target)
		}
		return err
	})
}

// copyFile replaces the file at path to by a copy of from. The copy has the same modification time, because Python
// compares that time with the compiled file.
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
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // fails after the rename
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(safeMode(info.Mode())), out.Close(),
		os.Chtimes(out.Name(), info.ModTime(), info.ModTime()))
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

// safeMode returns the mode that a file or folder of an environment has: only the owner may write to it, and everybody
// may read it, because each sandbox has its own user ID.
func safeMode(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() {
		return 0o755
	}
	return mode.Perm()&^0o022 | 0o444
}

// separateFiles copies each file in a folder that has another name elsewhere, and sets the modes of all files and
// folders. Files can be replaced while sandboxes use the folder: open files stay as they are.
func separateFiles(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
			return ignoreMissing(copyFile(path, path))
		}
		if mode := info.Mode() &^ fs.ModeType; mode != safeMode(info.Mode()) {
			err = os.Chmod(path, safeMode(info.Mode()))
		}
		return ignoreMissing(err)
	})
}
