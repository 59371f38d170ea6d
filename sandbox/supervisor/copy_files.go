package supervisor

import (
	"errors"
	"slices"

	"glasshouse/sandbox"
)

// HasForeignFiles reports whether somebody else than the code has put files into the session or changed them, in
// addition to a number of uploads.
func (s *Session) HasForeignFiles(uploads int) bool {
	return s.workspace.isChanged.Load() || len(s.uploads.List()) > uploads
}

// CopyFiles makes the uploads and the files and folders of /session those of another session. It leaves links alone. No
// code of both may run.
func (s *Session) CopyFiles(from *Session) error {
	for _, f := range from.uploads.List() {
		if err := s.copyUpload(from, f.Path); err != nil {
			return err
		}
	}
	wanted, err := from.workspace.List(".", sandbox.MaxDepth)
	if err != nil {
		return err
	}
	own, err := s.workspace.List(".", sandbox.MaxDepth)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(own) { // what is in a folder before the folder
		isWanted := slices.ContainsFunc(wanted, func(w sandbox.Entry) bool {
			return w.Path == e.Path && w.Kind == e.Kind
		})
		if !isWanted && e.Kind != sandbox.EntryLink {
			if err := s.workspace.Remove(e.Path); err != nil {
				return err
			}
		}
	}
	for _, e := range wanted {
		switch e.Kind {
		case sandbox.EntryFolder:
			_, _, err = s.workspace.MakeFolder(e.Path)
		case sandbox.EntryFile:
			err = s.copyFile(from, e)
		}
		if err != nil {
			return err
		}
	}
	s.workspace.isChanged.Store(from.HasForeignFiles(0))
	return nil
}

func (s *Session) copyUpload(from *Session, name string) error {
	f, _, err := from.uploads.Open(name)
	if err != nil {
		return err
	}
	_, err = s.uploads.Put(name, f)
	return errors.Join(err, f.Close())
}

func (s *Session) copyFile(from *Session, e sandbox.Entry) error {
	f, _, err := from.workspace.Open(e.Path)
	if err != nil {
		return err
	}
	_, err = s.workspace.WriteDated(e.Path, f, e.ModifiedAt)
	return errors.Join(err, f.Close())
}
