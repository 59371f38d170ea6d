package live

import (
	"context"
	"io"
	"os"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Files lists a sandbox's uploads, with the sandbox's limits and usage.
type Files struct {
	Files     []sandbox.File `json:"files"`
	Bytes     int64          `json:"bytes"`
	MaxBytes  int64          `json:"upload_max_bytes"`
	MaxFiles  int            `json:"upload_max_files"`
	SandboxID string         `json:"sandbox_id"`
}

// findWithFiles returns a live sandbox whose files the caller may use, and postpones its
// idle expiry.
func (s *Service) findWithFiles(ctx context.Context, caller sandbox.Key, id string) (*liveSandbox, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if err := live.sandbox.CheckFileAccess(); err != nil {
		return nil, err
	}
	s.touch(live)
	return live, nil
}

// Upload writes body to /data/path of a sandbox. It may be called while code runs there.
func (s *Service) Upload(
	ctx context.Context, caller sandbox.Key, id, path string, body io.Reader,
) (sandbox.File, error) {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return sandbox.File{}, err
	}
	return live.session.Uploads().Put(path, touchingReader{body, s, live})
}

// touchingReader postpones a sandbox's idle expiry at each read, so that a slow upload does
// not let the sandbox expire.
type touchingReader struct {
	io.Reader
	service *Service
	live    *liveSandbox
}

func (r touchingReader) Read(p []byte) (int, error) {
	r.service.touch(r.live)
	return r.Reader.Read(p)
}

// Files lists a sandbox's uploads.
func (s *Service) Files(ctx context.Context, caller sandbox.Key, id string) (Files, error) {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return Files{}, err
	}
	p := live.sandbox.Policy
	files := Files{
		SandboxID: id,
		Files:     live.session.Uploads().List(),
		MaxBytes:  p.UploadMaxBytes,
		MaxFiles:  p.UploadMaxFiles,
	}
	for _, f := range files.Files {
		files.Bytes += f.Size
	}
	return files, nil
}

// OpenFile opens an upload for reading. The caller closes it.
func (s *Service) OpenFile(ctx context.Context, caller sandbox.Key, id, path string) (*os.File, sandbox.File, error) {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return nil, sandbox.File{}, err
	}
	return live.session.Uploads().Open(path)
}

// RemoveFile removes an upload.
func (s *Service) RemoveFile(ctx context.Context, caller sandbox.Key, id, path string) error {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return err
	}
	return live.session.Uploads().Remove(path)
}

// Workspace has the files of a sandbox's /session.
type Workspace = supervisor.Workspace

// Workspace returns the files of a sandbox's /session, and postpones its idle expiry. It may be used while code runs
// there.
func (s *Service) Workspace(ctx context.Context, caller sandbox.Key, id string) (*Workspace, error) {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return live.session.Workspace(), nil
}
