package e2b

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// language is the only language of contexts.
const language = "python"

// maxContexts bounds the contexts of one sandbox.
const maxContexts = 100

// codeContext is a namespace of a sandbox's Python process. The first one, which has the sandbox's ID, is the default.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Folder   string `json:"cwd"`

	namespace string // of the process
	runs      int
}

// context returns the context with an ID; "" is the default one. The caller holds b.mu.
func (b *box) context(id string) (*codeContext, error) {
	for _, c := range b.contexts {
		if c.ID == id || id == "" && c.namespace == "" {
			return c, nil
		}
	}
	return nil, sandbox.Errorf(sandbox.FaultNotFound, "Context %s not found; create_code_context makes one", id)
}

func checkLanguage(name string) error {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", language, "py", "python3":
		return nil
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "Glasshouse runs Python, not %.50q; leave language out", name)
}

// failContext answers with plain text, which clients show as it is.
func (a *api) failContext(w http.ResponseWriter, r *http.Request, err error) {
	status, text := a.Message(w, r, lostKey(r.Context(), err))
	http.Error(w, text, status)
}

func (a *api) createContext(w http.ResponseWriter, r *http.Request, caller sandbox.Key, b *box) {
	var in struct {
		Language string `json:"language"`
		Folder   string `json:"cwd"`
	}
	err := a.readJSON(w, r, &in)
	if err == nil {
		err = checkLanguage(in.Language)
	}
	c := &codeContext{ID: rand.Text(), Language: language, Folder: home}
	if err == nil && in.Folder != "" {
		c.Folder, err = a.checkFolder(r, caller, b, in.Folder)
	}
	c.namespace = c.ID
	b.mu.Lock()
	if err == nil && len(b.contexts) >= maxContexts {
		err = sandbox.Errorf(sandbox.FaultLimit, "a sandbox has at most %d contexts; remove one", maxContexts)
	}
	if err == nil {
		b.contexts = append(b.contexts, c)
	}
	b.mu.Unlock()
	if err != nil {
		a.failContext(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, c)
}

// checkFolder returns the name for clients of a folder that exists.
func (a *api) checkFolder(r *http.Request, caller sandbox.Key, b *box, folder string) (string, error) {
	name, err := workspacePath(folder)
	if err != nil {
		return "", err
	}
	files, err := a.Service.Workspace(r.Context(), caller, b.id)
	if err != nil {
		return "", err
	}
	e, err := files.Stat(name)
	if err == nil && e.Kind != sandbox.EntryFolder {
		err = sandbox.Errorf(sandbox.FaultInvalid, "%s is not a folder", folder)
	}
	return clientPath(name), err
}

func (a *api) listContexts(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, b *box) {
	b.mu.Lock()
	list := slices.Clone(b.contexts)
	b.mu.Unlock()
	compat.WriteJSON(w, http.StatusOK, list)
}

// restartContext makes the next run of a context find no variables.
func (a *api) restartContext(w http.ResponseWriter, r *http.Request, _ sandbox.Key, b *box) {
	b.mu.Lock()
	c, err := b.context(r.PathValue("id"))
	if err == nil {
		b.forget = append(b.forget, c.namespace)
		c.runs = 0
	}
	b.mu.Unlock()
	if err != nil {
		a.failContext(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (a *api) removeContext(w http.ResponseWriter, r *http.Request, _ sandbox.Key, b *box) {
	b.mu.Lock()
	c, err := b.context(r.PathValue("id"))
	if err == nil && c.namespace == "" {
		err = sandbox.Errorf(
			sandbox.FaultMalformed,
			"the default context cannot be removed; restart it, or kill the sandbox",
		)
	}
	if err == nil {
		b.contexts = slices.DeleteFunc(b.contexts, func(other *codeContext) bool { return other == c })
		b.forget = append(b.forget, c.namespace)
	}
	b.mu.Unlock()
	if err != nil {
		a.failContext(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// scope returns the scope of a run in a context. The caller calls done when it knows whether the run has begun; done
// returns the number of the run in its context.
func (b *box) scope(
	contextID string,
	environ map[string]string,
) (s sandbox.Scope, done func(begun bool) int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.context(contextID)
	if err != nil {
		return s, nil, err
	}
	s = sandbox.Scope{Namespace: c.namespace, Forget: b.forget, Environ: map[string]string{}}
	b.forget = nil // otherwise a run that waits for this one would forget what this one has made
	s.Folder, err = workspacePath(c.Folder)
	maps.Copy(s.Environ, b.environ)
	maps.Copy(s.Environ, environ)
	return s, func(begun bool) int {
		b.mu.Lock()
		defer b.mu.Unlock()
		if begun {
			c.runs++
		} else {
			b.forget = append(s.Forget, b.forget...)
		}
		return c.runs
	}, err
}

var errTwoContexts = sandbox.Errorf(sandbox.FaultMalformed, "give one of context_id and language, not both")
