package sandbox

// Scope says where the code of a run finds its variables and its settings.
type Scope struct {
	Namespace string            `json:"namespace,omitempty"` // of variables in the process; "" is the first
	Folder    string            `json:"folder,omitempty"`    // below /session, in which a new namespace begins to work
	Forget    []string          `json:"forget,omitempty"`    // namespaces that are removed before the run
	Environ   map[string]string `json:"environ,omitempty"`   // environment variables of this run only
}
