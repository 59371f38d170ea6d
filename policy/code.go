package policy

import (
	"maps"
	"slices"
	"strings"
)

// CodeRules are the import and call rules for user code, as the guest receives them. They give agents an early and
// helpful error; they are no protection.
type CodeRules struct {
	Enabled          bool              `json:"enabled"`
	Allowed          []string          `json:"allowed"`         // modules with their submodules; "*" is any
	AllowedOnly      bool              `json:"allowed_only"`    // the request has allowed_modules
	Blocked          map[string]string `json:"blocked"`         // from a module to its replacement
	Calls            map[string]string `json:"calls"`           // from a builtin function to its replacement
	Keys             map[string]string `json:"keys"`            // from a name to the policy key that blocks it
	BlockedByRequest []string          `json:"blocked_modules"` // of the request
}

var allowedModules = strings.Fields(`
__future__ abc asyncio base64 bisect calendar collections concurrent contextlib copy csv dataclasses datetime decimal enum fractions functools
gzip hashlib heapq io itertools json logging math operator pathlib pprint processor_pipeline random re statistics string struct textwrap
threading time traceback typing urllib.parse uuid warnings zipfile zoneinfo
IPython PIL aiohttp matplotlib mpl_toolkits numpy openpyxl pandas plotly pyarrow requests scipy seaborn tqdm
`)

// blockedModules maps a module to its replacement, which the error for an agent names.
var blockedModules = map[string]string{
	"_thread": "threading", "asyncore": "asyncio", "builtins": "the builtin names directly", "cffi": "numpy", "code": "functions of your own",
	"codeop": "functions of your own", "ctypes": "numpy", "fcntl": "plain open()", "ftplib": "files in /session", "gc": "del",
	"getpass": "the run's context: a run has no terminal", "glob": "pathlib.Path.glob", "http": "requests, if the network is enabled",
	"imaplib": "the run's context", "importlib": "a plain import statement", "inspect": "inspect_var(name, value), or traceback",
	"marshal": "json", "mmap": "plain open()", "multiprocessing": "concurrent.futures.ThreadPoolExecutor", "nntplib": "requests, if the network is enabled",
	"os": "pathlib for files in /session", "pickle": "json, or DataFrame.to_parquet", "pip": "an installed package; help/functions lists them",
	"pkgutil": "a plain import statement", "platform": "get_sandbox_state()", "poplib": "the run's context", "psycopg": "db_query", "psycopg2": "db_query", "asyncpg": "db_query",
	"pty": "print() for output", "resource": "get_sandbox_state()", "runpy": "a plain import statement", "select": "asyncio", "selectors": "asyncio", "shelve": "json",
	"shutil": "pathlib", "signal": "nothing: the service enforces the time limit", "site": "a plain import statement", "smtplib": "the result of the run", "socket": "db_query for data",
	"socketserver": "the result of the run", "sqlalchemy": "db_query", "sqlite3": "db_query, or a pandas DataFrame", "ssl": "requests, if the network is enabled",
	"subprocess": "Python itself: a sandbox cannot start processes", "sys": "print() for output, raise for errors", "sysconfig": "get_sandbox_state()", "telnetlib": "db_query for data",
	"tempfile": "a path in /tmp, with open() or pathlib", "urllib": "urllib.parse, or requests if the network is enabled", "venv": "an installed package; help/functions lists them",
	"webbrowser": "the result of the run", "xmlrpc": "requests, if the network is enabled",
}

// blockedCalls maps a builtin function to its replacement.
var blockedCalls = map[string]string{
	"__import__": "an import statement", "compile": "functions of your own (re.compile is fine)", "eval": "json.loads for data, or a plain expression (df.eval is fine)",
	"exec": "functions of your own", "globals": "get_sandbox_state()", "input": "the run's context: a run has no terminal", "locals": "inspect_var(name, value)",
	"vars": "obj.__dict__, or dataclasses.asdict",
}

// fileModules and fileCalls are blocked if code may not use files.
var (
	fileModules = []string{"gzip", "pathlib", "zipfile"}
	fileCalls   = []string{"open"}
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
		if p.Profile == ProfileStrict || !p.EnableFileAccess {
			r.withoutFiles(p)
		}
	}
	if len(p.AllowedModules) > 0 {
		r.AllowedOnly = true
		r.Allowed = narrow(r.Allowed, p.AllowedModules)
	}
	return r
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
