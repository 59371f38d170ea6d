package librechat

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// uploads is the folder of a store. Each upload has a folder in it whose name is the file's ID.
const uploads = "uploads"

// maxDepth is the depth down to which files are returned.
const maxDepth = 8

// file is a file of a session.
type file struct {
	id    string
	entry sandbox.Entry
}

// name returns the name of a file that clients see.
func (f file) name() string {
	if rest, ok := strings.CutPrefix(f.entry.Path, uploads+"/"+f.id+"/"); ok {
		return rest
	}
	return f.entry.Path
}

// isChanged reports whether a file is not in a list, or has changed since.
func (f file) isChanged(before []file) bool {
	for _, old := range before {
		if old.entry.Path == f.entry.Path {
			return old.entry.Size != f.entry.Size || !old.entry.ModifiedAt.Equal(f.entry.ModifiedAt)
		}
	}
	return true
}

// files lists the regular files of a session, without hidden ones and what Python compiles.
func (a *api) files(ctx context.Context, caller sandbox.Key, id string) ([]file, error) {
	workspace, err := a.Service.Workspace(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	entries, err := workspace.List(".", maxDepth)
	list := []file{}
	for _, e := range entries {
		isHidden := strings.HasPrefix(e.Path, ".") || strings.Contains(e.Path, "/.") ||
			strings.Contains(e.Path, "__pycache__")
		if e.Kind != sandbox.EntryFile || isHidden || sandbox.EscapePath(e.Path) != e.Path {
			continue
		}
		f := file{fileID(e.Path), e}
		if rest, ok := strings.CutPrefix(e.Path, uploads+"/"); ok && a.isStore(id) {
			f.id, _, _ = strings.Cut(rest, "/")
		}
		list = append(list, f)
	}
	return list, err
}

func (a *api) isStore(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	return s != nil && s.isStore
}

// find returns a file of a session by its ID or its name.
func (a *api) find(ctx context.Context, caller sandbox.Key, session, name string) (id string, f file, err error) {
	id = sandboxID(session)
	list, err := a.files(ctx, caller, id)
	if err != nil {
		return id, f, err
	}
	for _, f := range list {
		if f.id == name || f.name() == name {
			return id, f, nil
		}
	}
	return id, f, sandbox.Errorf(sandbox.FaultNotFound, "there is no file %.100q in this session", name)
}

// copyFiles copies the files of a request that are in other sessions to a session, and returns the names of those that
// do not exist any more.
func (a *api) copyFiles(
	ctx context.Context,
	caller sandbox.Key,
	refs []fileRef,
	to string,
) (missing []string, err error) {
	target, err := a.Service.Workspace(ctx, caller, to)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		from, f, err := a.find(ctx, caller, ref.session(), ref.ID)
		if err != nil {
			if fault := sandbox.FaultOf(err); fault != sandbox.FaultNotFound && fault != sandbox.FaultGone {
				return nil, err
			}
			if _, err := target.Stat(ref.Name); err != nil { // an earlier request may have copied it
				missing = append(missing, ref.Name)
			}
			continue
		}
		name := strings.TrimPrefix(ref.Name, "/mnt/data/")
		if name == "" {
			name = f.name()
		}
		if from == to {
			continue
		}
		if has, err := target.Stat(name); err == nil && has.Kind == sandbox.EntryFile && !a.isStore(from) {
			continue // the session's own version, which its code may have changed
		} else if err == nil && has.ModifiedAt.After(f.entry.ModifiedAt) {
			continue
		}
		if err := a.copyFile(ctx, caller, from, f, to, name); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

func (a *api) copyFile(ctx context.Context, caller sandbox.Key, from string, f file, to, name string) error {
	source, err := a.Service.Workspace(ctx, caller, from)
	if err != nil {
		return err
	}
	target, err := a.Service.Workspace(ctx, caller, to)
	if err != nil {
		return err
	}
	body, _, err := source.Open(f.entry.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = target.Write(name, body)
	return err
}

// uploaded describes an upload to clients.
type uploaded struct {
	FileID   string `json:"fileId"`
	ID       string `json:"id"`
	Filename string `json:"filename"`
}

// upload stores the files of a form.
func (a *api) upload(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	form, err := r.MultipartReader()
	if err != nil {
		a.fail(w, r, sandbox.Errorf(sandbox.FaultMalformed, "the body must be a form with files: %s", err))
		return
	}
	id, list, err := a.storeFiles(r.Context(), caller, r.Header.Get("User-Id"), form)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, map[string]any{
		"message": "success", "session_id": sessionID(id), "storage_session_id": sessionID(id), "files": list,
	})
}

func (a *api) storeFiles(
	ctx context.Context, caller sandbox.Key, user string, form *multipart.Reader,
) (id string, list []uploaded, err error) {
	if id, err = a.store(ctx, caller, user); err != nil {
		return id, nil, err
	}
	workspace, err := a.Service.Workspace(ctx, caller, id)
	if err != nil {
		return id, nil, err
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) && len(list) > 0 {
			return id, list, nil
		}
		if err != nil {
			return id, nil, sandbox.Errorf(sandbox.FaultMalformed, "the body must be a form with files: %s", err)
		}
		_, parameters, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		name := strings.TrimPrefix(parameters["filename"], "/mnt/data/")
		if name == "" {
			continue // a field
		}
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
		fileID := base64.RawURLEncoding.EncodeToString(random[:])[:idLength]
		if _, err := workspace.Write(path.Join(uploads, fileID, name), part); err != nil {
			return id, nil, err
		}
		list = append(list, uploaded{fileID, fileID, name})
	}
}

func (a *api) download(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	id, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	workspace, err := a.Service.Workspace(r.Context(), caller, id)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	body, e, err := workspace.Open(f.entry.Path)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer body.Close()
	compat.WriteFile(w, body, e.Size, f.name(), sandbox.MIMEType(f.name(), []byte{0}))
}

// description describes a file to clients.
type description struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Session      string            `json:"session_id"`
	Storage      string            `json:"storage_session_id"`
	Size         int64             `json:"size"`
	ContentType  string            `json:"contentType"`
	LastModified time.Time         `json:"lastModified"`
	Metadata     map[string]string `json:"metadata"`
}

func describe(session string, f file) description {
	return description{
		ID: f.id, Name: f.name(), Session: session, Storage: session, Size: f.entry.Size,
		ContentType: sandbox.MIMEType(f.name(), []byte{0}), LastModified: f.entry.ModifiedAt,
		Metadata: map[string]string{"original-filename": f.name()},
	}
}

func (a *api) list(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	session := r.PathValue("session")
	files, err := a.files(r.Context(), caller, sandboxID(session))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := make([]description, 0, len(files))
	for _, f := range files {
		list = append(list, describe(session, f))
	}
	compat.WriteJSON(w, http.StatusOK, list)
}

func (a *api) describe(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	_, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, describe(r.PathValue("session"), f))
}

func (a *api) remove(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	id, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err == nil {
		files, findErr := a.Service.Workspace(r.Context(), caller, id)
		if err = findErr; err == nil {
			err = files.Remove(f.entry.Path)
		}
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, map[string]string{"message": "success"})
}

func (a *api) endSession(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	if err := a.Service.Delete(r.Context(), caller, sandboxID(r.PathValue("session"))); err != nil {
		a.fail(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, map[string]string{"message": "success"})
}
