package environment

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// Interpreter describes a Python installation or virtual environment.
type Interpreter struct {
	Executable string   `json:"executable"` // path with symbolic links resolved
	Version    []int    `json:"version"`
	Prefix     string   `json:"prefix"` // of the base installation, not of a virtual environment
	Stdlib     []string `json:"stdlib"`
	Packages   []string `json:"packages"` // folders of its packages
}

// describePython runs without the module site, which would run the .pth files of the interpreter's packages. Without
// site, Python before 3.14 ignores pyvenv.cfg, so the program finds the virtual environment itself.
const describePython = `import json,sys,os
venv=os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
if os.path.exists(os.path.join(venv,"pyvenv.cfg")): sys.prefix=sys.exec_prefix=venv
import sysconfig
p=sysconfig.get_paths()
print(json.dumps(dict(executable=os.path.realpath(sys.executable),version=list(sys.version_info[:3]),
prefix=sys.base_prefix,stdlib=sorted({p["stdlib"],p["platstdlib"]}),
packages=sorted({p["purelib"],p["platlib"]}))))`

// Inspect runs the interpreter at path and returns its description. Python 3.11 or newer is required.
func Inspect(path string) (Interpreter, error) {
	var py Interpreter
	cmd := exec.Command(path, "-I", "-S", "-c", describePython)
	cmd.Env = []string{"LANG=C.UTF-8"}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &py)
	}
	if err != nil {
		return py, fmt.Errorf("run %s to find its version: %w", path, err)
	}
	if len(py.Version) < 2 || py.Version[0] != 3 || py.Version[1] < 11 {
		return py, fmt.Errorf("%s is Python %s, want 3.11 or newer: name another interpreter with --python", path,
			py.VersionString())
	}
	return py, nil
}

// VersionString returns the version with dots, such as "3.11.2".
func (py Interpreter) VersionString() string {
	parts := make([]string, len(py.Version))
	for i, n := range py.Version {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}
