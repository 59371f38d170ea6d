package jupyter

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/kernel"
	"glasshouse/service/compat/jupyter/wire"
)

// kernelspec is a kind of kernel, as clients see it.
type kernelspec struct {
	Name      string            `json:"name"`
	Spec      map[string]any    `json:"spec"`
	Resources map[string]string `json:"resources"`
	python    string            // version
}

// defaultSpec is the name of the kernelspec of the default environment: many clients assume it.
const defaultSpec = "python3"

// specs returns a kernelspec for each environment.
func (s *server) specs() map[string]kernelspec {
	all := map[string]kernelspec{}
	for _, e := range s.Live.Environments.Environments() {
		name, title := e.Name, "Python "+e.Python+" (Glasshouse, "+e.Name+")"
		if e.Name == s.Live.Default.Environment {
			name, title = defaultSpec, "Python 3 (Glasshouse)"
		}
		all[name] = kernelspec{name, map[string]any{
			"argv": []string{"glasshouse"}, "env": map[string]string{}, "display_name": title, "language": "python",
			"interrupt_mode": "message", "metadata": map[string]string{},
		}, map[string]string{}, e.Python}
	}
	return all
}

func errNoSpec(name string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no kernelspec %.100q; GET /api/kernelspecs lists them", name)
}

func (s *server) listSpecs(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) error {
	return compat.WriteJSON(w, http.StatusOK, map[string]any{"default": defaultSpec, "kernelspecs": s.specs()})
}

func (s *server) showSpec(w http.ResponseWriter, r *http.Request, _ sandbox.Key) error {
	found, ok := s.specs()[r.PathValue("name")]
	if !ok {
		return errNoSpec(r.PathValue("name"))
	}
	return compat.WriteJSON(w, http.StatusOK, found)
}

// start starts a kernel of a kernelspec.
func (s *server) start(ctx context.Context, caller sandbox.Key, name string) (*kernel.Kernel, error) {
	if name == "" || name == "python" {
		name = defaultSpec
	}
	spec, ok := s.specs()[name]
	var config []byte
	switch {
	case !ok:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "%s", errNoSpec(name))
	case name != defaultSpec:
		config, _ = json.Marshal(map[string]string{"environment": name})
	}
	sb, err := s.Live.CreateCompat(ctx, caller, config)
	if err != nil {
		return nil, err
	}
	k := kernel.Start(s.Config, s.limits, caller, kernel.Spec{Name: name, Python: spec.python}, sb.ID)
	s.kernels.Put(sb.ID, k)
	return k, nil
}

// kernelsOf returns the kernels of the caller, in the order of their ids.
func (s *server) kernelsOf(caller sandbox.Key) []*kernel.Kernel {
	var own []*kernel.Kernel
	for _, k := range s.kernels.All() {
		if k.Owner.User == caller.User {
			own = append(own, k)
		}
	}
	slices.SortFunc(own, func(a, b *kernel.Kernel) int { return strings.Compare(a.ID, b.ID) })
	return own
}

// kernelHandler answers a request about a kernel that the caller may use.
type kernelHandler func(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel.Kernel) error

func (s *server) withKernel(handle kernelHandler) compat.Handler {
	return func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
		id := strings.ReplaceAll(r.PathValue("id"), "-", "")
		k, ok := s.kernels.Get(id)
		if ok {
			_, err := s.Live.Sandbox(r.Context(), caller, id)
			ok = err == nil
		}
		if !ok {
			return kernel.ErrNone
		}
		return handle(w, r, caller, k)
	}
}

func (s *server) listKernels(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) error {
	models := []kernel.Model{}
	for _, k := range s.kernelsOf(caller) {
		models = append(models, k.Model())
	}
	return compat.WriteJSON(w, http.StatusOK, models)
}

func (s *server) startKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	var in struct{ Name string }
	err := s.ReadJSON(w, r, &in)
	if err == nil {
		err = sandbox.CheckNames(map[string]string{"name": in.Name})
	}
	if err != nil {
		return err
	}
	k, err := s.start(r.Context(), caller, in.Name)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "kernels/"+k.ID) // relative: the API may be below a folder
	return compat.WriteJSON(w, http.StatusCreated, k.Model())
}

func (s *server) showKernel(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel.Kernel) error {
	return compat.WriteJSON(w, http.StatusOK, k.Model())
}

func (s *server) deleteKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel.Kernel) error {
	err := s.Live.Delete(r.Context(), caller, k.SandboxID)
	if err != nil && sandbox.FaultOf(err) != sandbox.FaultGone { // it has ended meanwhile
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) interruptKernel(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel.Kernel) error {
	k.Interrupt()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *server) restartKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel.Kernel) error {
	if err := k.Restart(r.Context(), caller); err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, k.Model())
}

func (s *server) openChannels(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel.Kernel) error {
	return k.Connect(w, r, caller, secretOf(r))
}

// status answers what Jupyter's server says about itself, of the caller's kernels.
func (s *server) status(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) error {
	connections, last, kernels := 0, s.startedAt.UTC().Format(wire.TimeFormat), s.kernelsOf(caller)
	for _, k := range kernels {
		model := k.Model()
		connections += model.Connections
		last = max(last, model.LastUsed) // the order of the texts is that of the times
	}
	return compat.WriteJSON(w, http.StatusOK, map[string]any{
		"connections": connections, "kernels": len(kernels), "last_activity": last,
		"started": s.startedAt.UTC().Format(wire.TimeFormat),
	})
}
