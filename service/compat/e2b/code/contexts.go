package code

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/e2b/files"
)

// language is the only language of contexts.
const language = "python"

// maxContexts bounds the contexts of one sandbox.
const maxContexts = 100

// codeContext is a namespace of a sandbox's Python process.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Folder   string `json:"cwd"`

	namespace string // of the process
	runs      int
}

// contexts are the contexts of a sandbox. The first one, which has the sandbox's ID, is the default.
type contexts struct {
	environ map[string]string

	mu     sync.Mutex
	list   []*codeContext
	forget []string // namespaces that the next run removes
}

func newContexts(sandboxID string, environ map[string]string) *contexts {
	return &contexts{
		environ: environ, list: []*codeContext{{ID: sandboxID, Language: language, Folder: files.Home}},
	}
}

// copyFor returns a copy for another sandbox, whose default context has its ID.
func (c *contexts) copyFor(sandboxID string) *contexts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &contexts{environ: c.environ, forget: slices.Clone(c.forget)}
	for n, each := range c.list {
		copied := *each
		if n == 0 {
			copied.ID = sandboxID
		}
		out.list = append(out.list, &copied)
	}
	return out
}

// find returns the context with an ID; "" is the default one. The caller holds mu.
func (c *contexts) find(id string) (*codeContext, error) {
	for _, each := range c.list {
		if each.ID == id || id == "" && each.namespace == "" {
			return each, nil
		}
	}
	return nil, sandbox.Errorf(sandbox.FaultNotFound, "Context %.100s not found; create_code_context makes one", id)
}

// add adds a context.
func (c *contexts) add(folder string) (*codeContext, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) >= maxContexts {
		return nil, sandbox.Errorf(sandbox.FaultLimit, "a sandbox has at most %d contexts; remove one", maxContexts)
	}
	id := rand.Text()
	added := &codeContext{ID: id, Language: language, Folder: folder, namespace: id}
	c.list = append(c.list, added)
	return added, nil
}

// clear makes the next run of a context find no variables.
func (c *contexts) clear(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cleared, err := c.find(id)
	if err == nil {
		c.forget = append(c.forget, cleared.namespace)
		cleared.runs = 0
	}
	return err
}

func (c *contexts) remove(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	removed, err := c.find(id)
	if err != nil {
		return err
	}
	if removed.namespace == "" {
		return sandbox.Errorf(sandbox.FaultMalformed,
			"the default context cannot be removed; restart it, or kill the sandbox")
	}
	c.list = slices.DeleteFunc(c.list, func(other *codeContext) bool { return other == removed })
	c.forget = append(c.forget, removed.namespace)
	return nil
}

// scope returns the scope of a run in a context. The caller calls done when it knows whether the run has begun; done
// returns the number of the run in its context.
func (c *contexts) scope(id string, environ map[string]string) (s sandbox.Scope, done func(begun bool) int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, err := c.find(id)
	if err != nil {
		return s, nil, err
	}
	s = sandbox.Scope{Namespace: used.namespace, Forget: c.forget, Environ: map[string]string{}}
	c.forget = nil // otherwise a run that waits for this one would forget what this one has made
	s.Folder, err = files.WorkspacePath(used.Folder)
	maps.Copy(s.Environ, c.environ)
	maps.Copy(s.Environ, environ)
	return s, func(begun bool) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if begun {
			used.runs++
		} else {
			c.forget = append(s.Forget, c.forget...)
		}
		return used.runs
	}, err
}

func (r *Runner) createContext(w http.ResponseWriter, req *http.Request, caller sandbox.Key, id string) error {
	var in struct {
		Language string `json:"language"`
		Folder   string `json:"cwd"`
	}
	err := r.ReadJSON(w, req, &in)
	if err == nil {
		err = sandbox.CheckNames(map[string]string{"cwd": in.Folder, "language": in.Language})
	}
	if err == nil {
		err = checkLanguage(in.Language)
	}
	folder := files.Home
	if err == nil && in.Folder != "" {
		folder, err = r.checkFolder(req, caller, id, in.Folder)
	}
	if err != nil {
		return err
	}
	added, err := r.contextsOf(id).add(folder)
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, added)
}

// checkFolder returns the name for clients of a folder that exists.
func (r *Runner) checkFolder(req *http.Request, caller sandbox.Key, id, folder string) (string, error) {
	name, err := files.WorkspacePath(folder)
	if err != nil {
		return "", err
	}
	workspace, err := r.Live.Workspace(req.Context(), caller, id)
	if err != nil {
		return "", err
	}
	e, err := workspace.Stat(name)
	if err == nil && e.Kind != sandbox.EntryFolder {
		err = sandbox.Errorf(sandbox.FaultInvalid, "%s is not a folder", folder)
	}
	return files.ClientPath(name), err
}

func (r *Runner) listContexts(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, id string) error {
	c := r.contextsOf(id)
	c.mu.Lock()
	list := slices.Clone(c.list)
	c.mu.Unlock()
	return compat.WriteJSON(w, http.StatusOK, list)
}

func (r *Runner) restartContext(_ http.ResponseWriter, req *http.Request, _ sandbox.Key, id string) error {
	return r.contextsOf(id).clear(req.PathValue("id"))
}

func (r *Runner) removeContext(_ http.ResponseWriter, req *http.Request, _ sandbox.Key, id string) error {
	return r.contextsOf(id).remove(req.PathValue("id"))
}

func checkLanguage(name string) error {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", language, "py", "python3":
		return nil
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "Glasshouse runs Python, not %.50q; leave language out", name)
}
