package environment

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Interpreter is what a Python says of itself.
type Interpreter struct {
	Executable string   `json:"executable"` // where it really lies
	Version    []int    `json:"version"`
	Prefix     string   `json:"prefix"` // of the base installation, not of a virtual environment
	Stdlib     []string `json:"stdlib"`
	Packages   []string `json:"packages"` // folders that it has packages in
}

const askPython = `import json,sys,sysconfig,os
p=sysconfig.get_paths()
print(json.dumps(dict(executable=os.path.realpath(sys.executable),version=list(sys.version_info[:3]),
prefix=sys.base_prefix,stdlib=sorted({p["stdlib"],p["platstdlib"]}),
packages=sorted({p["purelib"],p["platlib"]}))))`

// Inspect asks the interpreter at path for its version and folders.
func Inspect(path string) (Interpreter, error) {
	var py Interpreter
	cmd := exec.Command(path, "-I", "-c", askPython)
	cmd.Env = []string{"LANG=C.UTF-8"}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &py)
	}
	if err != nil {
		return py, fmt.Errorf("ask %s what it is: %w", path, err)
	}
	if len(py.Version) < 2 || py.Version[0] != 3 || py.Version[1] < 11 {
		return py, fmt.Errorf("%s is Python %s; 3.11 or newer is needed: name another with --python", path, py.VersionString())
	}
	return py, nil
}

// Dotted is its version as people write it.
func (py Interpreter) VersionString() string {
	parts := make([]string, len(py.Version))
	for i, n := range py.Version {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}
