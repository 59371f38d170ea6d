package service

import (
	"context"
	"io"
	"os"

	"glasshouse/sandbox"
)

// Files are a sandbox's uploads, and what of its bounds they take.
type Files struct {
	Files     []sandbox.File `json:"files"`
	Bytes     int64          `json:"bytes"`
	MaxBytes  int64          `json:"upload_max_bytes"`
	MaxFiles  int            `json:"upload_max_files"`
	SandboxID string         `json:"sandbox_id"`
}

// files finds a live sandbox whose files who may use, and uses it.
func (s *Service) files(ctx context.Context, caller sandbox.Key, id string) (*live, error) {
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if !l.box.Policy.EnableFileAccess {
		return nil, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_file_access", Detail: "this sandbox was created with file access off"}
	}
	s.touch(l)
	return l, nil
}

// Upload writes what body has to /data/path of a sandbox, also while it runs.
func (s *Service) Upload(ctx context.Context, caller sandbox.Key, id, path string, body io.Reader) (sandbox.File, error) {
	l, err := s.files(ctx, caller, id)
	if err != nil {
		return sandbox.File{}, err
	}
	return l.session.Uploads().Put(path, using{body, s, l})
}

// using is a body whose reading uses its sandbox: a slow upload does not let it expire.
type using struct {
	io.Reader
	service *Service
	live    *live
}

func (u using) Read(p []byte) (int, error) {
	u.service.touch(u.live)
	return u.Reader.Read(p)
}

// Files lists a sandbox's uploads.
func (s *Service) Files(ctx context.Context, caller sandbox.Key, id string) (Files, error) {
	l, err := s.files(ctx, caller, id)
	if err != nil {
		return Files{}, err
	}
	out := Files{SandboxID: id, Files: l.session.Uploads().List(), MaxBytes: l.box.Policy.UploadMaxBytes, MaxFiles: l.box.Policy.UploadMaxFiles}
	for _, f := range out.Files {
		out.Bytes += f.Size
	}
	return out, nil
}

// OpenFile opens an upload for reading; the caller closes it.
func (s *Service) OpenFile(ctx context.Context, caller sandbox.Key, id, path string) (*os.File, sandbox.File, error) {
	l, err := s.files(ctx, caller, id)
	if err != nil {
		return nil, sandbox.File{}, err
	}
	return l.session.Uploads().Open(path)
}

// RemoveFile removes an upload.
func (s *Service) RemoveFile(ctx context.Context, caller sandbox.Key, id, path string) error {
	l, err := s.files(ctx, caller, id)
	if err != nil {
		return err
	}
	return l.session.Uploads().Remove(path)
}
