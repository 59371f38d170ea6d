package isolate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/protocol"
)

// stageSpec is what the stage is told, as JSON on descriptor 4.
type stageSpec struct {
	Binds  map[string]string `json:"binds"`  // read-only: path inside to path on the host
	Links  map[string]string `json:"links"`  // symbolic links of the root: path to target
	Files  map[string][]byte `json:"files"`  // written under /glasshouse
	Python string            `json:"python"` // the interpreter, inside
	Before string            `json:"before"` // of Files, what is loaded before it; or ""
	Path   []string          `json:"path"`   // folders of packages, inside
	Warm   []string          `json:"warm"`   // modules to import
	Shared string            `json:"shared"` // a folder of the host's; a mount of it is handed back, and is not in the root

	Private  bool     `json:"private"`  // in namespaces, with a root of its own; else
	Folder   string   `json:"folder"`   // a folder of the host stands in for it
	Readable []string `json:"readable"` // what Landlock lets children read

	Filters map[string][]byte `json:"filters"` // seccomp programs by name
	Policy  json.RawMessage   `json:"policy"`  // of most sandboxes, and the rules for
	Rules   json.RawMessage   `json:"rules"`   // their code
	Births  []*protocol.Enter `json:"births"`  // how its children lock themselves down, but for the uid; nil: they are told later
	Without walls             `json:"without"` // by a test only

	inherited []string // environment, where a test leaves ours out
}

// rootOf says what the minimal root binds and links so that py can run: its
// standard library, its packages, the system's shared libraries and loader, time
// zones, and nothing else of the host. Packages move to /packages, so that an
// environment may lie anywhere, and its path on the host is not seen.
func rootOf(py environment.Interpreter) (binds, links map[string]string, packages []string) {
	binds, links = map[string]string{}, map[string]string{}
	want := append([]string{py.Executable}, py.Stdlib...)
	// An interpreter outside /usr keeps its own shared libraries.
	if py.Prefix != "/usr" && py.Prefix != "/usr/local" {
		want = append(want, filepath.Join(py.Prefix, "lib"))
	}
	libs, _ := filepath.Glob("/usr/lib/*-linux-gnu")
	want = append(want, libs...)
	want = append(want, "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives")
	for _, dir := range []string{"/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			links[dir] = target
		} else {
			real, _ := filepath.Glob(dir + "/*-linux-gnu")
			want = append(want, append(real, "/lib64")...)
		}
	}
	sort.Strings(want)
	for _, path := range want {
		if _, err := os.Stat(path); err == nil && !under(path, binds) {
			binds[path] = path
		}
	}
	for n, host := range py.Packages {
		inside := "/packages/" + strconv.Itoa(n)
		binds[inside] = host
		packages = append(packages, inside)
	}
	return binds, links, packages
}

// under says whether path lies in one of the folders that are bound already.
func under(path string, binds map[string]string) bool {
	for b := range binds {
		if strings.HasPrefix(path, b+"/") {
			return true
		}
	}
	return false
}
