package jupyter

import (
	"cmp"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/kernel"
)

// notebook names a kernel in /api/sessions: a client finds the kernel of a notebook by its path.
type notebook struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// sessionModel is a session as clients see it. Its id is that of the kernel.
type sessionModel struct {
	ID string `json:"id"`
	notebook
	Kernel kernel.Model `json:"kernel"`
}

// sessionOf returns the session of a kernel. It returns kernel.ErrNone if the kernel has none.
func (s *server) sessionOf(k *kernel.Kernel) (sessionModel, error) {
	named, ok := s.notebooks.Get(k.SandboxID)
	if !ok {
		return sessionModel{}, kernel.ErrNone
	}
	return sessionModel{k.ID, named, k.Model()}, nil
}

func (s *server) listSessions(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) error {
	models := []sessionModel{}
	for _, k := range s.kernelsOf(caller) {
		if model, err := s.sessionOf(k); err == nil {
			models = append(models, model)
		}
	}
	return compat.WriteJSON(w, http.StatusOK, models)
}

// sessionBody is the body of a request for a session. A kernel with an id exists; any other is started.
type sessionBody struct {
	notebook
	Kernel struct{ ID, Name string }
}

// check returns FaultInvalid for texts that are too long.
func (in *sessionBody) check() error {
	return sandbox.CheckNames(map[string]string{
		"path": in.Path, "name": in.Name, "type": in.Type, "kernel.id": in.Kernel.ID, "kernel.name": in.Kernel.Name,
	})
}

// startSession answers with the session of a path. It starts a kernel if there is none.
func (s *server) startSession(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	var in sessionBody
	err := s.ReadJSON(w, r, &in)
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return err
	}
	var chosen *kernel.Kernel
	for _, k := range s.kernelsOf(caller) {
		model, err := s.sessionOf(k)
		if k.ID == in.Kernel.ID || in.Kernel.ID == "" && err == nil && model.Path == in.Path {
			chosen = k
		}
	}
	switch {
	case chosen == nil && in.Kernel.ID != "":
		err = kernel.ErrNone
	case chosen == nil:
		chosen, err = s.start(r.Context(), caller, in.Kernel.Name)
	}
	if err != nil {
		return err
	}
	return s.rename(w, http.StatusCreated, chosen, in.notebook)
}

// rename changes what is given of a session, and answers with the session.
func (s *server) rename(w http.ResponseWriter, status int, k *kernel.Kernel, to notebook) error {
	old, _ := s.notebooks.Get(k.SandboxID)
	s.notebooks.Put(k.SandboxID, notebook{
		cmp.Or(to.Path, old.Path), cmp.Or(to.Name, old.Name), cmp.Or(to.Type, old.Type, "notebook"),
	})
	model, err := s.sessionOf(k)
	if err != nil { // the kernel has ended meanwhile
		return err
	}
	return compat.WriteJSON(w, status, model)
}

func (s *server) showSession(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel.Kernel) error {
	model, err := s.sessionOf(k)
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, model)
}

// changeSession renames a session. It cannot get another kernel, because its id is that of its kernel.
func (s *server) changeSession(w http.ResponseWriter, r *http.Request, _ sandbox.Key, k *kernel.Kernel) error {
	var in sessionBody
	err := s.ReadJSON(w, r, &in)
	if err == nil {
		err = in.check()
	}
	if err == nil && in.Kernel.ID != "" && in.Kernel.ID != k.ID {
		err = sandbox.Errorf(sandbox.FaultInvalid,
			"a session keeps its kernel: delete the session, and create one with the other kernel")
	}
	if err != nil {
		return err
	}
	return s.rename(w, http.StatusOK, k, in.notebook)
}
