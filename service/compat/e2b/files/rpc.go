package files

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// The requests of this file follow the Connect protocol with JSON, which the clients use: POST /SERVICE/METHOD.

// rpcRequest has the fields of all requests for workspace.
type rpcRequest struct {
	Path        string `json:"path"`
	Depth       int    `json:"depth"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// entryInfo describes an entry to clients. In Protobuf's JSON an int64 is a string.
type entryInfo struct {
	Name        string    `json:"name"`
	Type        string    `json:"type"`
	Path        string    `json:"path"`
	Size        string    `json:"size"`
	Mode        uint32    `json:"mode"`
	Permissions string    `json:"permissions"`
	Owner       string    `json:"owner"`
	Group       string    `json:"group"`
	Modified    time.Time `json:"modifiedTime"`
}

func newEntryInfo(e sandbox.Entry) entryInfo {
	types := map[sandbox.EntryKind]string{
		sandbox.EntryFile: "FILE_TYPE_FILE", sandbox.EntryFolder: "FILE_TYPE_DIRECTORY",
		sandbox.EntryLink: "FILE_TYPE_SYMLINK",
	}
	mode := fs.FileMode(e.Mode & 0o777)
	if e.Kind == sandbox.EntryFolder {
		mode |= fs.ModeDir
	}
	info := entryInfo{
		Path: ClientPath(e.Path), Type: types[e.Kind], Size: strconv.FormatInt(e.Size, 10), Mode: e.Mode & 0o777,
		Permissions: mode.String(), Owner: "user", Group: "user", Modified: e.ModifiedAt,
	}
	info.Name = path.Base(info.Path)
	if info.Type == "" {
		info.Type = "FILE_TYPE_UNSPECIFIED"
	}
	return info
}

const processesAbsent = "Glasshouse runs Python, not a shell: use run_code. Commands, terminals, Git and watch_dir " +
	"are not available"

// call answers a request for files, and refuses one for processes.
func (a api) call(w http.ResponseWriter, r *http.Request, caller sandbox.Key, id string) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	streams := strings.HasPrefix(kind, "application/connect+")
	if r.PathValue("service") != "filesystem.Filesystem" || streams {
		return failRPC(w, streams, "unimplemented", processesAbsent)
	}
	var in rpcRequest
	err := a.ReadJSON(w, r, &in)
	var answer any
	if err == nil {
		answer, err = a.filesystem(r, caller, id, in)
	}
	if err != nil {
		err = compat.LostKey(r.Context(), err)
		_, text := a.Message(w, r, err)
		return failRPC(w, false, cmp.Or(rpcCodes[sandbox.FaultOf(err)], "internal"), text)
	}
	if answer == nil {
		return failRPC(w, false, "unimplemented", processesAbsent)
	}
	return compat.WriteJSON(w, http.StatusOK, answer)
}

// errExists is the error for a folder that exists: clients then report that they made none.
var errExists = &sandbox.Error{Fault: sandbox.FaultBusy, Detail: "the folder exists"}

// filesystem answers a request for workspace. The answer to an unknown method is nil.
func (a api) filesystem(r *http.Request, caller sandbox.Key, id string, in rpcRequest) (any, error) {
	workspace, err := a.Live.Workspace(r.Context(), caller, id)
	if err != nil {
		return nil, err
	}
	method := r.PathValue("method")
	given := in.Path
	if method == "Move" {
		given = in.Source
	}
	name, err := WorkspacePath(given)
	if err != nil {
		if method == "Stat" { // clients ask whether something exists
			err = sandbox.Errorf(sandbox.FaultNotFound, "%s", err)
		}
		return nil, err
	}
	var e sandbox.Entry
	switch method {
	case "Stat":
		e, err = workspace.Stat(name)
	case "MakeDir":
		var made bool
		if e, made, err = workspace.MakeFolder(name); err == nil && !made {
			err = errExists
		}
	case "Move":
		var to string
		if to, err = WorkspacePath(in.Destination); err == nil {
			e, err = workspace.Move(name, to)
		}
	case "Remove":
		return struct{}{}, workspace.Remove(name)
	case "ListDir":
		if err := a.Access.HoldLarge(r.Context(), caller.User); err != nil {
			return nil, err
		}
		list, err := workspace.List(name, max(in.Depth, 1))
		entries := make([]entryInfo, 0, len(list))
		for _, e := range list {
			entries = append(entries, newEntryInfo(e))
		}
		return map[string]any{"entries": entries}, err
	default:
		return nil, nil
	}
	return map[string]any{"entry": newEntryInfo(e)}, err
}

// rpcCodes has the codes of the Connect protocol for errors.
var rpcCodes = map[sandbox.Fault]string{
	sandbox.FaultInvalid: "invalid_argument", sandbox.FaultMalformed: "invalid_argument",
	sandbox.FaultNotFound: "not_found", sandbox.FaultForbidden: "permission_denied",
	sandbox.FaultBusy: "already_exists", sandbox.FaultUnauthorized: "unauthenticated",
	sandbox.FaultTooLarge: "resource_exhausted", sandbox.FaultLimit: "resource_exhausted",
	sandbox.FaultFull: "unavailable", sandbox.FaultUnavailable: "unavailable", sandbox.FaultGone: "unavailable",
}

// rpcStatus has the HTTP statuses of the codes, as the protocol says.
var rpcStatus = map[string]int{
	"invalid_argument": http.StatusBadRequest, "not_found": http.StatusNotFound,
	"permission_denied": http.StatusForbidden, "already_exists": http.StatusConflict,
	"unauthenticated": http.StatusUnauthorized, "resource_exhausted": http.StatusTooManyRequests,
	"unavailable": http.StatusServiceUnavailable, "unimplemented": http.StatusNotImplemented,
	"internal": http.StatusInternalServerError,
}

// failRPC answers with an error of the protocol. The error of a stream is its last message, which has the flag 2 and
// its length before it.
func failRPC(w http.ResponseWriter, streams bool, code, message string) error {
	failure := map[string]string{"code": code, "message": message}
	if !streams {
		return compat.WriteJSON(w, rpcStatus[code], failure)
	}
	body, _ := json.Marshal(map[string]any{"error": failure}) // a map of strings has a form in JSON
	w.Header().Set("Content-Type", "application/connect+json")
	head := binary.BigEndian.AppendUint32([]byte{2}, uint32(len(body)))
	_, _ = w.Write(append(head, body...)) // fails if the client has left
	return nil
}
