package librechat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/librechat/session"
)

// executeRequest is the body of POST /exec.
type executeRequest struct {
	Language string    `json:"lang"`
	Code     string    `json:"code"`
	Args     []string  `json:"args"`
	Session  string    `json:"session_id"`
	Files    []fileRef `json:"files"`
}

// maxFileRefs bounds the files of a request: each is looked up.
const maxFileRefs = 1000

// check returns FaultInvalid for texts that are too long, and for too many files.
func (in *executeRequest) check() error {
	if len(in.Files) > maxFileRefs {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "files",
			Detail: fmt.Sprintf("it has %d files, and may have %d; send fewer", len(in.Files), maxFileRefs)}
	}
	for _, f := range in.Files {
		if err := sandbox.CheckNames(map[string]string{
			"files.id": f.ID, "files.name": f.Name, "files.session_id": f.Session,
			"files.storage_session_id": f.StorageSession,
		}); err != nil {
			return err
		}
	}
	return sandbox.CheckNames(map[string]string{"lang": in.Language, "session_id": in.Session})
}

// fileRef names a file of a session. Clients of different versions name the session differently.
type fileRef struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	Session        string `json:"session_id,omitempty"`
	StorageSession string `json:"storage_session_id,omitempty"`
}

func (f fileRef) session() string { return cmp.Or(f.StorageSession, f.Session) }

// executeAnswer is the body of an answer to POST /exec.
type executeAnswer struct {
	Session  string           `json:"session_id"`
	Stdout   string           `json:"stdout"`
	Stderr   string           `json:"stderr"`
	Files    []fileRef        `json:"files"`
	Run      compat.PistonRun `json:"run"`
	Language string           `json:"language"`
}

func (a *api) execute(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	var in executeRequest
	err := a.ReadJSON(w, r, &in)
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return err
	}
	code, ok := pythonOf(in)
	if !ok {
		return compat.WriteJSON(w, http.StatusOK, refuseLanguage(in))
	}
	answer, err := a.run(r.Context(), caller, in, code)
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, answer)
}

// refuseLanguage answers a request for another language. Clients show a model only the output of an answer, so this is
// no error of HTTP.
func refuseLanguage(in executeRequest) executeAnswer {
	out := executeAnswer{Session: in.Session, Files: []fileRef{}, Language: in.Language}
	out.Run.Code = 1
	out.note(fmt.Sprintf("This server runs Python only, not %.50q. Send the same work as Python code "+
		"with lang \"py\".\n", in.Language))
	return out
}

// The two shell commands that LibreChat itself sends: to read a file for a model, and to write one.
var (
	catCommand    = regexp.MustCompile(`^cat '((?:[^']|'\\'')*)'\s*$`)
	pythonCommand = regexp.MustCompile(`(?s)^python3? - <<'(\w+)'\n(.*)\n(\w+)\s*$`)
)

// pythonOf returns the Python code of a request. ok is false for another language.
func pythonOf(in executeRequest) (code string, ok bool) {
	switch strings.ToLower(in.Language) {
	case "py", "python", "python3":
		if len(in.Args) == 0 {
			return in.Code, true
		}
		args, _ := json.Marshal(append([]string{"main.py"}, in.Args...)) // also a list of Python
		return "import sys; sys.argv = " + string(args) + "\n" + in.Code, true
	case "bash":
		if m := catCommand.FindStringSubmatch(in.Code); m != nil {
			name, _ := json.Marshal(strings.ReplaceAll(m[1], `'\''`, "'"))
			return "print(open(" + string(name) + ").read(), end='')", true
		}
		if m := pythonCommand.FindStringSubmatch(in.Code); m != nil && m[1] == m[3] {
			return m[2], true
		}
	}
	return "", false
}

// run runs code in the request's session, or in a new one.
func (a *api) run(ctx context.Context, caller sandbox.Key, in executeRequest, code string) (executeAnswer, error) {
	var e *sandbox.Execution
	id, err := a.chooseSession(ctx, caller, in)
	if err != nil {
		return executeAnswer{}, err
	}
	missing, err := a.copyFiles(ctx, caller, in.Files, id)
	if err != nil {
		return executeAnswer{}, err
	}
	before, tooMany, err := a.filesForAnswer(ctx, caller, id)
	if err != nil {
		return executeAnswer{}, err
	}
	request := sandbox.Request{Code: code, Kind: sandbox.KindLibreChat, Scope: sandbox.Scope{Forget: []string{""}}}
	err = a.WhenIdle(ctx, id, func() (err error) {
		e, err = a.Runs.Execute(ctx, caller, id, request)
		return err
	})
	if err == nil && ctx.Err() != nil { // the client has left, or its key was revoked
		err = context.Cause(ctx)
	}
	if err != nil {
		return executeAnswer{}, err
	}
	after, stillTooMany, err := a.filesForAnswer(ctx, caller, id)
	if err != nil {
		return executeAnswer{}, err
	}
	answer := newAnswer(e, id)
	if tooMany || stillTooMany {
		answer.note("/mnt/data has too many files to return any; remove some.\n")
		return answer, nil
	}
	for _, name := range missing {
		answer.note(fmt.Sprintf("The file %s is not available any more; upload it again.\n", name))
	}
	for _, now := range after {
		if now.isChanged(before) {
			answer.Files = append(answer.Files, fileRef{now.id, now.name, answer.Session, answer.Session})
		}
	}
	return answer, nil
}

// filesForAnswer returns the files of a sandbox, unless they are too many.
func (a *api) filesForAnswer(ctx context.Context, caller sandbox.Key, id string) (_ []file, tooMany bool, _ error) {
	in, err := a.folder(ctx, caller, id)
	if sandbox.FaultOf(err) == sandbox.FaultTooLarge {
		return nil, true, nil
	}
	return in.files, false, err
}

// chooseSession returns the session in which a request's code runs: the one that it names, or one that has its files,
// or a new one.
func (a *api) chooseSession(ctx context.Context, caller sandbox.Key, in executeRequest) (string, error) {
	ids := []string{session.SandboxID(in.Session)}
	for _, f := range in.Files {
		ids = append(ids, session.SandboxID(f.session()))
	}
	for _, id := range ids {
		if a.sessions.Use(ctx, caller, id) {
			return id, nil
		}
	}
	return a.sessions.Open(ctx, caller, ids...)
}

// endStatuses has the codes for the ends of a run that its code did not choose.
var endStatuses = map[sandbox.Status]string{sandbox.StatusTimeout: "TO", sandbox.StatusKilled: "SG"}

// newAnswer translates an execution.
func newAnswer(e *sandbox.Execution, id string) executeAnswer {
	out := executeAnswer{
		Session: session.ID(id), Stdout: e.Stdout, Stderr: e.Stderr + compat.Stderr(e), Files: []fileRef{},
		Language: "py",
	}
	out.Run = compat.PistonRun{
		Stdout: out.Stdout, Stderr: out.Stderr, Output: out.Stdout + out.Stderr,
		Memory: int64(e.Usage.PeakMemoryMB * (1 << 20)), CPUTime: e.Usage.CPUMS, WallTime: e.Usage.WallMS,
	}
	if e.Status != sandbox.StatusCompleted {
		out.Run.Code, out.Run.Message = 1, e.Error
	}
	if status, ok := endStatuses[e.Status]; ok {
		out.Run.Status = &status
	}
	shown := 0
	for _, o := range e.Outputs {
		if o.Role != sandbox.RoleResult {
			shown++
		}
	}
	if shown > 0 {
		out.note(fmt.Sprintf("%d figures or values were shown, which this tool cannot return. Save figures with "+
			"plt.savefig(\"/mnt/data/NAME.png\"), and print values.\n", shown))
	}
	return out
}

// note adds a line for the model to the answer.
func (out *executeAnswer) note(text string) {
	if out.Stderr != "" && !strings.HasSuffix(out.Stderr, "\n") {
		text = "\n" + text
	}
	out.Stderr += text
	out.Run.Stderr += text
	out.Run.Output += text
}
