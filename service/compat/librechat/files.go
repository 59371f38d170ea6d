package librechat

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/librechat/session"
	"glasshouse/service/live"
)

// uploads is the folder of a store. Each upload has a folder in it whose name is the file's ID.
const uploads = "uploads"

// maxDepth is the depth down to which files are returned.
const maxDepth = 8

// folder has the files of a session.
type folder struct {
	*live.Workspace
	files []file
}

// file is a regular file of a session, with the ID and the name that clients know.
type file struct {
	id, name string
	entry    sandbox.Entry
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

// folder returns the files of a sandbox, without hidden ones and what Python compiles.
func (a *api) folder(ctx context.Context, caller sandbox.Key, id string) (folder, error) {
	workspace, err := a.Live.Workspace(ctx, caller, id)
	if err != nil {
		return folder{}, err
	}
	f := folder{Workspace: workspace}
	entries, err := workspace.List(".", maxDepth)
	for _, e := range entries {
		isHidden := strings.HasPrefix(e.Path, ".") || strings.Contains(e.Path, "/.") ||
			strings.Contains(e.Path, "__pycache__")
		if e.Kind != sandbox.EntryFile || isHidden || sandbox.EscapePath(e.Path) != e.Path {
			continue
		}
		listed := file{fileID(e.Path), e.Path, e}
		if rest, ok := strings.CutPrefix(e.Path, uploads+"/"); ok && a.sessions.IsStore(id) {
			listed.id, listed.name, _ = strings.Cut(rest, "/")
		}
		f.files = append(f.files, listed)
	}
	return f, err
}

// fileID returns the ID of a file by its path below /mnt/data.
func fileID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:session.IDLength]
}

// find returns a file of a session by its ID or its name, and notes the use of the session.
func (a *api) find(ctx context.Context, caller sandbox.Key, in, name string) (folder, file, error) {
	a.sessions.NoteUse(caller, session.SandboxID(in))
	found, err := a.folder(ctx, caller, session.SandboxID(in))
	if err != nil {
		return found, file{}, err
	}
	for _, f := range found.files {
		if f.id == name || f.name == name {
			return found, f, nil
		}
	}
	return found, file{}, sandbox.Errorf(sandbox.FaultNotFound, "there is no file %.100q in this session", name)
}

// source is a file of another session that a request needs under a name.
type source struct {
	workspace *live.Workspace
	file      file
	origin    string // the sandbox
}

// copyFiles copies the files of a request that are in other sessions to a sandbox, and returns the names of those that
// do not exist any more. Of several files with one name it copies the newest, and of equally old ones the last.
func (a *api) copyFiles(ctx context.Context, caller sandbox.Key, refs []fileRef, to string) ([]string, error) {
	target, err := a.Live.Workspace(ctx, caller, to)
	if err != nil {
		return nil, err
	}
	newest := map[string]source{}
	var unknown, missing []string
	for _, ref := range refs {
		origin := session.SandboxID(ref.session())
		from, f, err := a.find(ctx, caller, ref.session(), ref.ID)
		switch fault := sandbox.FaultOf(err); {
		case fault == sandbox.FaultNotFound || fault == sandbox.FaultGone:
			unknown = append(unknown, ref.Name)
			continue
		case err != nil:
			return nil, err
		case origin == to:
			continue
		}
		name := cmp.Or(strings.TrimPrefix(ref.Name, "/mnt/data/"), f.name)
		if old, ok := newest[name]; !ok || !f.entry.ModifiedAt.Before(old.file.entry.ModifiedAt) {
			newest[name] = source{from.Workspace, f, origin}
		}
	}
	for name, from := range newest {
		if err := a.copyFile(from, target, name); err != nil {
			return nil, err
		}
	}
	for _, name := range unknown {
		if _, err := target.Stat(name); err != nil { // an earlier request may have copied it
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// copyFile copies a file, unless the target has a newer version or one that its code may have changed. The copy keeps
// the time of the upload, so that a later upload is newer than the copy, and a change by code newer than the upload.
func (a *api) copyFile(from source, target *live.Workspace, name string) error {
	modified := from.file.entry.ModifiedAt.Truncate(time.Microsecond) // as Workspace.WriteDated stores it
	if has, err := target.Stat(name); err == nil &&
		(has.Kind == sandbox.EntryFile && !a.sessions.IsStore(from.origin) || !has.ModifiedAt.Before(modified)) {
		return nil
	}
	body, _, err := from.workspace.Open(from.file.entry.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = target.WriteDated(name, body, modified)
	return err
}

// upload stores the files of a form in the store of the client's user.
func (a *api) upload(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	form, err := r.MultipartReader()
	if err != nil {
		return sandbox.Errorf(sandbox.FaultMalformed, "the body must be a form with files: %s", err)
	}
	user := r.Header.Get("User-Id")
	if err := sandbox.CheckNames(map[string]string{"User-Id": user}); err != nil {
		return err
	}
	id, err := a.sessions.Store(r.Context(), caller, user)
	if err != nil {
		return err
	}
	workspace, err := a.Live.Workspace(r.Context(), caller, id)
	if err != nil {
		return err
	}
	list := []map[string]string{}
	err = compat.EachFile(form, func(name string, body io.Reader) error {
		name = strings.TrimPrefix(name, "/mnt/data/")
		file := fileID(rand.Text())
		list = append(list, map[string]string{"fileId": file, "id": file, "filename": name})
		// path.Join would resolve .. first.
		_, err := workspace.WriteDated(uploads+"/"+file+"/"+name, body, a.sessions.UploadTime())
		return err
	})
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, map[string]any{
		"message": "success", "session_id": session.ID(id), "storage_session_id": session.ID(id), "files": list,
	})
}

func (a *api) download(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	in, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err != nil {
		return err
	}
	body, e, err := in.Open(f.entry.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	compat.WriteFile(w, body, e.Size, f.name, sandbox.MIMEType(f.name, []byte{0}))
	return nil
}

// fileInfo describes a file of a session to clients.
type fileInfo struct {
	fileRef
	Size     int64     `json:"size"`
	MIMEType string    `json:"contentType"`
	Modified time.Time `json:"lastModified"`
	Metadata struct {
		Name string `json:"original-filename"`
	} `json:"metadata"`
}

func newFileInfo(sessionID string, f file) fileInfo {
	info := fileInfo{
		fileRef: fileRef{f.id, f.name, sessionID, sessionID}, Size: f.entry.Size,
		MIMEType: sandbox.MIMEType(f.name, []byte{0}), Modified: f.entry.ModifiedAt,
	}
	info.Metadata.Name = f.name
	return info
}

func (a *api) list(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	id := r.PathValue("session")
	if err := a.Access.HoldLarge(r.Context(), caller.User); err != nil {
		return err
	}
	in, err := a.folder(r.Context(), caller, session.SandboxID(id))
	if err != nil {
		return err
	}
	list := make([]fileInfo, 0, len(in.files))
	for _, f := range in.files {
		list = append(list, newFileInfo(id, f))
	}
	return compat.WriteJSON(w, http.StatusOK, list)
}

func (a *api) describe(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	_, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, newFileInfo(r.PathValue("session"), f))
}

func (a *api) remove(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	in, f, err := a.find(r.Context(), caller, r.PathValue("session"), r.PathValue("file"))
	if err == nil {
		err = in.Remove(f.entry.Path)
	}
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, map[string]string{"message": "success"})
}
