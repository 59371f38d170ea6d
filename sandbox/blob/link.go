package blob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"glasshouse/sandbox"
)

var isFolder = regexp.MustCompile(
	`^(?:sessions/[A-Za-z0-9_-]{1,64}/artifacts|(?:outputs|shown)/[A-Za-z0-9_-]{1,64})$`).MatchString

// CheckName returns an error unless an artifact's Folder is one for links and its Path can be that of a file. The data
// folder also has keys, databases and a log, so a name that comes from an import or a backup must not reach them.
func CheckName(a sandbox.Artifact) error {
	if !isFolder(a.Folder) {
		return fmt.Errorf("%q cannot be the folder of a file: want sessions/ID/artifacts, outputs/ID or shown/ID",
			a.Folder)
	}
	if problem := sandbox.CheckPath(a.Path); problem != "" {
		return fmt.Errorf("%q cannot be the path of a file: %s", a.Path, problem)
	}
	return nil
}

// Link links an artifact's bytes at its Folder, such as sessions/ID/artifacts, and Path. It replaces a file or folder
// that has this name. It returns the path of the link on this machine.
func (s *Store) Link(a sandbox.Artifact) (file string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("link an artifact: %w", err)
		}
	}()
	if err := CheckName(a); err != nil {
		return "", err
	}
	name := path.Join(a.Folder, a.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(a.Folder)
	if err := s.removeFilesAbove(a.Folder, path.Dir(a.Path)); err != nil {
		return "", err
	}
	if err := s.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return "", err
	}
	temp := path.Join(a.Folder, tempPrefix+rand.Text())
	if err := s.root.Link(contentPath(a.SHA256), temp); err != nil {
		return "", err
	}
	if err = s.root.Rename(temp, name); err != nil { // an earlier run left a folder with this name
		err = errors.Join(s.root.RemoveAll(name), s.root.Rename(temp, name))
	}
	// If both names are links to the same bytes already, rename(2) does nothing and leaves both.
	if removeErr := s.root.Remove(temp); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = removeErr
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}

// removeFilesAbove removes a file of an earlier run where the link needs a folder: the subfolder or one of its parents.
func (s *Store) removeFilesAbove(folder, subfolder string) error {
	if subfolder == "." {
		return nil
	}
	if err := s.removeFilesAbove(folder, path.Dir(subfolder)); err != nil {
		return err
	}
	name := path.Join(folder, subfolder)
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return s.root.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Unlink removes the link of an artifact and the folders that become empty. The bytes stay until Sweep. Unlink returns
// nil if the link does not exist.
func (s *Store) Unlink(a sandbox.Artifact) error {
	if err := CheckName(a); err != nil {
		return fmt.Errorf("remove the link of an artifact: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path.Join(a.Folder, a.Path)
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.removeEmpty(path.Dir(name))
	return nil
}

// removeEmpty removes a folder of links and the folders above it, up to the first that is not empty.
func (s *Store) removeEmpty(folder string) {
	for ; strings.Contains(folder, "/") && !strings.HasPrefix(folder, contentDir+"/"); folder = path.Dir(folder) {
		if s.root.Remove(folder) != nil {
			return
		}
	}
}
