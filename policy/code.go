package policy

import (
	"maps"
	"slices"
	"strings"
)

// CodeRules are the import and call rules for user code, as the guest receives them. They give agents an early and
// helpful error; they do not protect the machine.
type CodeRules struct {
	Enabled          bool              `json:"enabled"`
	Allowed          []string          `json:"allowed"`         // modules with their submodules; "*" is any
	AllowedOnly      bool              `json:"allowed_only"`    // the request has allowed_modules
	Blocked          map[string]string `json:"blocked"`         // from a module to its replacement
	Calls            map[string]string `json:"calls"`           // from a builtin function to its replacement
	Keys             map[string]string `json:"keys"`            // from a name to the policy key that blocks it
	BlockedByRequest []string          `json:"blocked_modules"` // of the request
}

// allowedModules are the modules of the standard library that work in a sandbox, in any version of Python, and the
// packages of the default environment. The isolation does not depend on the list: a module that can't work, or that
// surprises, is in blockedModules.
var allowedModules = strings.Fields(`
__future__ abc aifc annotationlib argparse array ast asyncio audioop base64 binascii bisect bz2 cProfile calendar
cgi cgitb chunk cmath cmd codecs collections colorsys compileall compression concurrent configparser contextlib
contextvars copy copyreg crypt csv dataclasses datetime dbm decimal difflib dis distutils doctest email encodings
enum errno filecmp fileinput fnmatch fractions functools gc genericpath getopt gettext glob graphlib gzip hashlib
heapq hmac html imghdr inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox
mailcap marshal math mimetypes mmap modulefinder msilib msvcrt netrc nt ntpath nturl2path numbers opcode operator
optparse os.path pathlib pickle pickletools pipes platform plistlib posixpath pprint processor_pipeline profile
pstats py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re reprlib sched secrets shelve shlex shutil
sndhdr sqlite3 sre_compile sre_constants sre_parse stat statistics string stringprep struct sunau symtable tabnanny
tarfile tempfile textwrap this threading time timeit token tokenize tomllib trace traceback tracemalloc types typing
unicodedata unittest urllib.parse uu uuid warnings wave weakref winreg winsound xdrlib xml zipapp zipfile zlib
zoneinfo
IPython PIL aiohttp dateutil jinja2 matplotlib mpl_toolkits numpy openpyxl pandas plotly pyarrow pylab requests scipy seaborn
bs4 html5lib joblib lxml sklearn tabulate tqdm typing_extensions
`)

// blockedModules maps a module to its replacement, which the error for an agent names.
var blockedModules = map[string]string{
	"_thread": "threading", "antigravity": "the result of the run", "asynchat": "asyncio", "asyncore": "asyncio",
	"asyncpg": "db_query", "atexit": "the end of the code: exit functions never run", "bdb": "a debug session of the service",
	"builtins": "the builtin names directly", "cffi": "numpy", "code": "functions of your own",
	"codeop": "functions of your own", "ctypes": "numpy", "curses": "print() for output",
	"ensurepip": "%pip list, which shows what is installed", "faulthandler": "traceback", "fcntl": "plain open()",
	"ftplib": "files in /session", "getpass": "the run's context: a run has no terminal",
	"grp": "nothing: a sandbox has one user", "http": "requests, if the network is enabled",
	"idlelib": "a debug session of the service", "imaplib": "the run's context", "imp": "a plain import statement",
	"importlib": "a plain import statement", "multiprocessing": "concurrent.futures.ThreadPoolExecutor",
	"nis": "the run's context", "nntplib": "requests, if the network is enabled", "os": "pathlib for files in /session, or os.path",
	"ossaudiodev": "the module wave", "pdb": "a debug session of the service",
	"pip": "an installed package; %pip list shows them", "pkgutil": "a plain import statement", "poplib": "the run's context",
	"posix": "pathlib for files in /session", "psycopg": "db_query", "psycopg2": "db_query", "pty": "print() for output",
	"pwd": "nothing: a sandbox has one user", "readline": "the run's context: a run has no terminal",
	"resource": "get_sandbox_state()", "rlcompleter": "dir()", "runpy": "a plain import statement", "select": "asyncio",
	"selectors": "asyncio", "signal": "nothing: the service enforces the time limit", "site": "a plain import statement",
	"smtpd": "the result of the run", "smtplib": "the result of the run", "socket": "db_query for data",
	"socketserver": "the result of the run", "spwd": "nothing: a sandbox has one user", "sqlalchemy": "db_query",
	"ssl": "requests, if the network is enabled", "subprocess": "Python itself: a sandbox cannot start processes",
	"sys": "print() for output, raise for errors", "sysconfig": "get_sandbox_state()", "syslog": "debug(message)",
	"telnetlib": "db_query for data", "termios": "print() for output", "tkinter": "matplotlib or plotly",
	"tty": "print() for output", "turtle": "matplotlib", "turtledemo": "matplotlib",
	"urllib": "urllib.parse, or requests if the network is enabled", "venv": "an installed package; %pip list shows them",
	"webbrowser": "the result of the run", "wsgiref": "the result of the run", "xmlrpc": "requests, if the network is enabled",
	"zipimport": "a plain import statement",
}

// blockedCalls maps a builtin function to its replacement.
var blockedCalls = map[string]string{
	"__import__": "an import statement", "compile": "functions of your own (re.compile is fine)",
	"exec": "functions of your own", "input": "a variable, or the run's context: nobody answers input()",
}

// strictCalls are the calls that the profile strict blocks in addition.
var strictCalls = map[string]string{
	"eval":    "json.loads for data, or a plain expression (df.eval is fine)",
	"globals": "get_sandbox_state()", "locals": "inspect_var(name, value)", "vars": "obj.__dict__, or dataclasses.asdict",
}

// fileModules and fileCalls are blocked if code may not use files.
var (
	fileModules = strings.Fields("bz2 dbm filecmp fileinput glob gzip linecache lzma mailbox mmap os.path pathlib shelve " +
		"shutil sqlite3 tarfile tempfile zipapp zipfile")
	fileCalls = []string{"open"}
)

// Rules returns the code rules of a policy in an environment. added are the modules that the operator has added to
// the environment; they are allowed in every profile. AllowedModules and BlockedModules of the policy only narrow
// what the profile and the environment allow.
func Rules(p Policy, added []string) CodeRules {
	r := CodeRules{
		Enabled: true, Allowed: []string{"*"}, Blocked: map[string]string{}, Calls: map[string]string{}, Keys: map[string]string{},
		BlockedByRequest: append([]string{}, p.BlockedModules...),
	}
	switch p.Profile {
	case ProfileUnrestricted, ProfileCompat, ProfileNotebook:
		r.Enabled = len(p.AllowedModules)+len(p.BlockedModules) > 0
	default:
		r.Allowed = withAdded(added)
		maps.Copy(r.Blocked, blockedModules)
		maps.Copy(r.Calls, blockedCalls)
		if p.Profile == ProfileStrict {
			maps.Copy(r.Calls, strictCalls)
		}
		if p.Profile == ProfileStrict || !p.EnableFileAccess {
			r.withoutFiles(p)
		}
		r.allow(p.OperatorModules)
	}
	if len(p.AllowedModules) > 0 {
		r.AllowedOnly = true
		r.Allowed = narrow(r.Allowed, p.AllowedModules)
	}
	return r
}

// allow adds the modules that the operator allows to agents. "*" is any module.
func (r *CodeRules) allow(modules []string) {
	for _, m := range modules {
		if m == "*" {
			r.Allowed = []string{"*"}
			clear(r.Blocked)
			return
		}
		delete(r.Blocked, m)
		if !slices.Contains(r.Allowed, m) {
			r.Allowed = append(r.Allowed, m)
		}
	}
}

// installable are the blocked modules that are not part of Python. They are allowed if the operator has added them.
var installable = []string{"asyncpg", "cffi", "pip", "psycopg", "psycopg2", "sqlalchemy"}

// withAdded returns the modules that the profiles allow, and the added modules that are not part of Python.
func withAdded(added []string) []string {
	all := slices.Clone(allowedModules)
	for _, m := range added {
		if _, blocked := blockedModules[m]; !slices.Contains(all, m) && (!blocked || slices.Contains(installable, m)) {
			all = append(all, m)
		}
	}
	return all
}

// withoutFiles blocks the modules and calls that use files.
func (r *CodeRules) withoutFiles(p Policy) {
	const instead = "the run's result and context: code in this sandbox may not use files"
	for _, name := range fileModules {
		r.Blocked[name] = instead
		r.Allowed = slices.DeleteFunc(r.Allowed, func(m string) bool { return m == name })
	}
	for _, name := range fileCalls {
		r.Calls[name] = instead
	}
	if !p.EnableFileAccess {
		for _, name := range slices.Concat(fileModules, fileCalls) {
			r.Keys[name] = "enable_file_access"
		}
	}
}

// narrow returns the requested modules that are allowed, and __future__, which is always harmless.
func narrow(allowed, requested []string) []string {
	out := []string{"__future__"}
	for _, want := range requested {
		switch {
		case allowed[0] == "*" || covers(allowed, want):
			out = append(out, want)
		default: // a request for urllib allows urllib.parse, if only that is allowed
			for _, have := range allowed {
				if strings.HasPrefix(have, want+".") {
					out = append(out, have)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// covers reports whether list has the module or a package that contains it.
func covers(list []string, module string) bool {
	for {
		if slices.Contains(list, module) {
			return true
		}
		dot := strings.LastIndexByte(module, '.')
		if dot < 0 {
			return false
		}
		module = module[:dot]
	}
}
