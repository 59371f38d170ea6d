package policy

import (
	"slices"
	"strings"
)

// CodeRules are the import and call rules for the user's own code, as the child
// gets them. They are a courtesy to agents, an early and helpful error.
type CodeRules struct {
	Enabled        bool              `json:"enabled"`
	Allowed        []string          `json:"allowed"`         // modules, by their dotted names; submodules follow; "*" is any
	AllowedOnly    bool              `json:"allowed_only"`    // the request named its own list
	Blocked        map[string]string `json:"blocked"`         // module to what to use instead
	Calls          map[string]string `json:"calls"`           // bare call to what to use instead
	Keys           map[string]string `json:"keys"`            // the policy key behind a name, where it is not the profile
	BlockedByOwner []string          `json:"blocked_modules"` // the request's
}

var allowedModules = words(`
__future__ abc asyncio base64 bisect calendar collections concurrent contextlib copy csv dataclasses datetime decimal enum fractions functools
gzip hashlib heapq io itertools json logging math operator pathlib pprint processor_pipeline random re statistics string struct textwrap
threading time traceback typing urllib.parse uuid warnings zipfile zoneinfo
IPython.display PIL aiohttp matplotlib mpl_toolkits numpy openpyxl pandas plotly pyarrow requests scipy seaborn tqdm
`)

var blockedModules = map[string]string{
	"_thread": "threading", "asyncore": "asyncio", "builtins": "the names themselves", "cffi": "numpy", "code": "functions of your own",
	"codeop": "functions of your own", "ctypes": "numpy", "fcntl": "plain open()", "ftplib": "files in /session", "gc": "del; the memory is all yours",
	"getpass": "the run's context: there is nobody to ask", "glob": "pathlib.Path.glob", "http": "requests, where the network is on",
	"imaplib": "the run's context", "importlib": "a plain import statement", "inspect": "inspect_var(name, value), or traceback",
	"marshal": "json", "mmap": "plain open()", "multiprocessing": "concurrent.futures.ThreadPoolExecutor", "nntplib": "requests, where the network is on",
	"os": "pathlib for files in /session; the environment holds nothing", "pickle": "json, or DataFrame.to_parquet", "pip": "the packages that are there; help/functions lists them",
	"pkgutil": "a plain import statement", "platform": "get_sandbox_state()", "poplib": "the run's context", "psycopg": "db_query", "psycopg2": "db_query", "asyncpg": "db_query",
	"pty": "print() for output", "resource": "get_sandbox_state()", "runpy": "a plain import statement", "select": "asyncio", "selectors": "asyncio", "shelve": "json",
	"shutil": "pathlib", "signal": "nothing: the service keeps the time", "site": "a plain import statement", "smtplib": "the result of the run", "socket": "db_query for data",
	"socketserver": "the result of the run", "sqlalchemy": "db_query", "sqlite3": "db_query, or a pandas DataFrame", "ssl": "requests, where the network is on",
	"subprocess": "Python itself: no process can be started here", "sys": "print() for output, raise for errors", "sysconfig": "get_sandbox_state()", "telnetlib": "db_query for data",
	"tempfile": "a path in /tmp, with open() or pathlib", "urllib": "urllib.parse, or requests where the network is on", "venv": "the packages that are there; help/functions lists them",
	"webbrowser": "the result of the run", "xmlrpc": "requests, where the network is on",
}

var blockedCalls = map[string]string{
	"__import__": "an import statement", "compile": "functions of your own (re.compile is fine)", "eval": "json.loads for data, or a plain expression (df.eval is fine)",
	"exec": "functions of your own", "globals": "get_sandbox_state()", "input": "the run's context: there is nobody to ask", "locals": "inspect_var(name, value)",
	"vars": "obj.__dict__, or dataclasses.asdict",
}

// filesOff are the names that give way where code may have no files: modules
// and calls alike.
var (
	fileModules = []string{"gzip", "pathlib", "zipfile"}
	fileCalls   = []string{"open"}
)

// Rules derives the code rules of a policy, in an environment to which the operator has
// added modules: those are allowed, too. allowed_modules narrows what the profile and the
// environment allow, and blocked_modules takes from that; neither adds anything.
func Rules(p Policy, added []string) CodeRules {
	r := CodeRules{
		Enabled: true, Allowed: []string{"*"}, Blocked: map[string]string{}, Calls: map[string]string{}, Keys: map[string]string{},
		BlockedByOwner: append([]string{}, p.BlockedModules...),
	}
	if p.Profile == ProfileUnrestricted || p.Profile == ProfileCompat {
		r.Enabled = len(p.AllowedModules)+len(p.BlockedModules) > 0
	} else {
		r.Allowed = withAdded(added)
		copyInto(r.Blocked, blockedModules)
		copyInto(r.Calls, blockedCalls)
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

// installable are the blocked modules that are none of Python's own: an operator who adds
// one means it to be used.
var installable = []string{"asyncpg", "cffi", "pip", "psycopg", "psycopg2", "sqlalchemy"}

// withAdded are the modules that the profiles allow, and those of added that may be allowed.
func withAdded(added []string) []string {
	all := slices.Clone(allowedModules)
	for _, m := range added {
		if _, blocked := blockedModules[m]; !slices.Contains(all, m) && (!blocked || slices.Contains(installable, m)) {
			all = append(all, m)
		}
	}
	return all
}

func (r *CodeRules) withoutFiles(p Policy) {
	const instead = "the run's result and context: this sandbox has no files for code"
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

// narrow returns the part of asked that allowed covers, with the language's own
// __future__, which is always harmless.
func narrow(allowed, asked []string) []string {
	out := []string{"__future__"}
	for _, want := range asked {
		switch {
		case allowed[0] == "*" || covers(allowed, want):
			out = append(out, want)
		default: // urllib asked for where urllib.parse is allowed
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

// covers reports whether module, or a package that it is in, is in list.
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

func copyInto(to, from map[string]string) {
	for k, v := range from {
		to[k] = v
	}
}

func words(text string) []string { return strings.Fields(text) }
