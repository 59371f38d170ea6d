package jupyter

import (
	"cmp"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// notebookRecord names a kernel in /api/sessions: a client finds the kernel of a notebook by its path.
type notebookRecord struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// sessionModel is a session as clients see it. Its id is that of the kernel.
type sessionModel struct {
	ID string `json:"id"`
	notebookRecord
	Kernel   kernelModel       `json:"kernel"`
	Notebook map[string]string `json:"notebook"` // for old clients
}

// sessionOf returns the session of a kernel; false if it has none.
func sessionOf(k *kernel) (sessionModel, bool) {
	k.mu.Lock()
	record := k.notebook
	k.mu.Unlock()
	if record == nil {
		return sessionModel{}, false
	}
	old := map[string]string{"path": record.Path, "name": record.Name}
	return sessionModel{k.id, *record, k.model(), old}, true
}

func (s *server) listSessions(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) {
	models := []sessionModel{}
	for _, k := range s.kernelsOf(caller) {
		if model, ok := sessionOf(k); ok {
			models = append(models, model)
		}
	}
	compat.WriteJSON(w, http.StatusOK, models)
}

// sessionBody is the body of a request for a session. A kernel with an id exists; any other is started.
type sessionBody struct {
	notebookRecord
	Kernel struct{ ID, Name string }
}

// startSession answers with the session of a path. It starts a kernel if there is none.
func (s *server) startSession(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	var in sessionBody
	if err := s.decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	var chosen *kernel
	for _, k := range s.kernelsOf(caller) {
		model, ok := sessionOf(k)
		if k.id == in.Kernel.ID || in.Kernel.ID == "" && ok && model.Path == in.Path {
			chosen = k
		}
	}
	var err error
	switch {
	case chosen == nil && in.Kernel.ID != "":
		err = errNoKernel()
	case chosen == nil:
		chosen, err = s.start(r.Context(), caller, in.Kernel.Name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	chosen.rename(in.notebookRecord)
	model, _ := sessionOf(chosen)
	compat.WriteJSON(w, http.StatusCreated, model)
}

// rename changes what is given of a session.
func (k *kernel) rename(to notebookRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := notebookRecord{Type: "notebook"}
	if k.notebook != nil {
		old = *k.notebook
	}
	k.notebook = &notebookRecord{cmp.Or(to.Path, old.Path), cmp.Or(to.Name, old.Name), cmp.Or(to.Type, old.Type)}
}

// withSession returns a handler for the kernel of a session, whose ids are the same.
func (s *server) withSession(handle kernelHandler) compat.Handler {
	named := func(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel) {
		if _, ok := sessionOf(k); !ok {
			s.fail(w, r, errNoKernel())
			return
		}
		handle(w, r, caller, k)
	}
	return func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
		r.SetPathValue("id", r.PathValue("session"))
		s.withKernel(named)(w, r, caller)
	}
}

func (s *server) showSession(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel) {
	model, _ := sessionOf(k)
	compat.WriteJSON(w, http.StatusOK, model)
}

// changeSession renames a session. It cannot get another kernel, because its id is that of its kernel.
func (s *server) changeSession(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel) {
	var in sessionBody
	err := s.decode(w, r, &in)
	if err == nil && in.Kernel.ID != "" && in.Kernel.ID != k.id {
		err = sandbox.Errorf(sandbox.FaultInvalid,
			"a session keeps its kernel: delete the session, and create one with the other kernel")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	k.rename(in.notebookRecord)
	s.showSession(w, r, caller, k)
}
