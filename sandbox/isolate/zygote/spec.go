package zygote

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/protocol"
)

// Spec tells the launcher which root to build and which zygote to become. The service
// writes it as JSON to the launcher's descriptor 4.
type Spec struct {
	Python      string            // the interpreter, as a path in the root
	Preload     string            // one of Files, for LD_PRELOAD; "" for none
	Files       map[string][]byte // the guest's code, by file name
	Packages    []string          // folders of packages, in the root
	WarmModules []string          // modules that the zygote imports
	HasSessions bool              // thousands of its children may live at the same time
	HashSeed    uint32            // of Python's hashes of texts; 0: another one for each zygote

	Namespaces bool              // new namespaces and a private root, which the next three fields describe
	Binds      map[string]string // read-only mounts: path in the root to path on the machine
	Links      map[string]string // symbolic links in the root: path to target
	SharedDir  string            // a folder of the machine; the zygote sends the service a mount of it

	WorkDir  string   // without Namespaces: the folder on the machine with the guest's code,
	TempDir  string   // and the one that the zygote may write to, which no zygote of another environment may
	Readable []string // paths that Landlock lets children read

	Filters map[string][]byte // seccomp programs by name
	Policy  json.RawMessage   // of most sandboxes
	Rules   json.RawMessage   // code rules of most sandboxes
	Births  []Birth           // a fork chooses from them
	UIDs    UIDRange          // of the children; the zygote has a uid of its own if it is not empty
	Lock    Lock              // of the zygote
	Without layer.Set         // layers that a test leaves out

	inherited []string // environment variables, if a test leaves out the layer Environment
}

// Birth is how a child begins.
type Birth struct {
	Enter   *protocol.Enter `json:"enter"`   // without a uid; nil: sent after the fork
	Network bool            `json:"network"` // in a network namespace of its own
}

// Lock is what a zygote gives up before it imports a package.
type Lock struct {
	Filter   []byte   `json:"filter"`   // seccomp program; nil for none
	Landlock bool     `json:"landlock"` // if the kernel has it
	Readable []string `json:"readable"` // paths that Landlock lets the zygote and its children read,
	Writable []string `json:"writable"` // and write to
	Port     int      `json:"port"`     // to which they may connect over TCP
}

// MinimalRoot returns the mounts and links of a root in which an interpreter can run:
// its standard library, its packages, the system's shared libraries and loader, and
// time zones, locales and fonts. It mounts packages in /packages, so that user code does not see the path of an
// environment on the machine; the result packages has the paths in /packages.
func MinimalRoot(py environment.Interpreter) (binds, links map[string]string, packages []string) {
	binds, links = map[string]string{}, map[string]string{}
	paths := append([]string{py.Executable}, py.Stdlib...)
	if py.Prefix != "/usr" && py.Prefix != "/usr/local" { // other interpreters have their own shared libraries
		paths = append(paths, filepath.Join(py.Prefix, "lib"))
	}
	libraries, _ := filepath.Glob("/usr/lib/*-linux-gnu")
	paths = append(paths, libraries...)
	if loader := loaderOf(py.Executable); loader != "" {
		paths = append(paths, loader)
	}
	paths = append(paths, "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/usr/lib/locale", "/usr/share/fonts",
		"/etc/ld.so.cache", "/etc/alternatives")
	for _, dir := range []string{"/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			links[dir] = target
		} else {
			libraries, _ := filepath.Glob(dir + "/*-linux-gnu")
			paths = append(paths, append(libraries, "/lib64")...)
		}
	}
	slices.Sort(paths) // folders before their content
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil && !isInside(path, binds) {
			binds[path] = path
		}
	}
	for n, dir := range py.Packages {
		inside := "/packages/" + strconv.Itoa(n)
		binds[inside] = dir
		packages = append(packages, inside)
	}
	return binds, links, packages
}

// loaderOf returns the path of the loader that a program names, without links in its folder; "" if it names none. On
// amd64 the loader lies in a folder of libraries, on arm64 next to them: /lib/ld-linux-aarch64.so.1.
func loaderOf(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(part.Open(), unix.PathMax))
		if err != nil {
			return ""
		}
		dir, base := filepath.Split(string(bytes.TrimRight(name, "\x00")))
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return ""
		}
		return filepath.Join(dir, base)
	}
	return ""
}

// isInside reports whether path lies in one of the folders in binds.
func isInside(path string, binds map[string]string) bool {
	for folder := range binds {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
