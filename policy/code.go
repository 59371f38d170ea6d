package policy

// CodeRules are the import and call rules for the user's own code, as the child
// gets them.
type CodeRules struct {
	Enabled        bool              `json:"enabled"`
	Allowed        []string          `json:"allowed"`         // modules, by their dotted names; submodules follow
	Blocked        map[string]string `json:"blocked"`         // module to what to use instead
	Calls          map[string]string `json:"calls"`           // bare call to what to use instead
	AllowedOnly    bool              `json:"allowed_only"`    // the request named its own list
	BlockedByOwner []string          `json:"blocked_modules"` // the request's
}

var allowedModules = []string{
	"json", "datetime", "math", "random", "collections", "itertools", "functools", "operator", "re", "string", "uuid", "hashlib", "base64", "urllib.parse", "typing",
	"dataclasses", "enum", "asyncio", "statistics", "decimal", "fractions", "textwrap", "time", "calendar", "io", "csv", "pathlib", "copy", "pprint", "abc", "contextlib",
	"zoneinfo", "warnings", "logging", "traceback", "heapq", "bisect", "struct", "threading", "concurrent", "gzip", "zipfile", "__future__", "processor_pipeline",
	"numpy", "pandas", "scipy", "matplotlib", "mpl_toolkits", "seaborn", "plotly", "PIL", "openpyxl", "pyarrow", "tqdm", "requests", "aiohttp", "IPython.display",
}

var blockedModules = map[string]string{
	"os": "pathlib for files in /session; the environment holds nothing", "sys": "print() for output, raise for errors", "subprocess": "Python itself: no process can be started here",
	"importlib": "a plain import statement", "socket": "db_query for data: the network is off", "ctypes": "numpy", "urllib": "urllib.parse, or requests where the network is on",
	"http": "requests where the network is on", "ftplib": "files in /session", "smtplib": "the result of the run", "telnetlib": "db_query", "shutil": "pathlib", "tempfile": "/tmp or /session by open()",
	"pickle": "json, or pandas.to_parquet", "marshal": "json", "multiprocessing": "concurrent.futures.ThreadPoolExecutor", "signal": "nothing: the service keeps the time", "psycopg2": "db_query",
	"psycopg": "db_query", "sqlalchemy": "db_query", "sqlite3": "db_query, or a pandas DataFrame", "builtins": "the names themselves", "gc": "nothing: memory is the sandbox's", "inspect": "inspect_var",
}

var blockedCalls = map[string]string{
	"eval": "json.loads or ast-free code", "exec": "functions", "compile": "functions (re.compile is fine)", "__import__": "an import statement", "input": "the run's context: there is nobody to ask",
	"globals": "get_sandbox_state()", "locals": "inspect_var(name, value)", "vars": "obj.__dict__ or dataclasses.asdict",
}

// Rules derives the code rules of a policy.
func Rules(p Policy) CodeRules {
	r := CodeRules{Enabled: p.Profile != ProfileUnrestricted, Allowed: allowedModules, Blocked: blockedModules, Calls: blockedCalls, BlockedByOwner: p.BlockedModules}
	if len(p.AllowedModules) > 0 {
		r.Allowed, r.AllowedOnly = nil, true
		for _, m := range p.AllowedModules {
			if _, blocked := blockedModules[m]; !blocked || p.Profile == ProfileUnrestricted {
				r.Allowed = append(r.Allowed, m)
			}
		}
	}
	if p.Profile == ProfileStrict || !p.EnableFileAccess {
		calls := map[string]string{"open": "the result of the run: files are off in this sandbox"}
		for name, hint := range blockedCalls {
			calls[name] = hint
		}
		r.Calls = calls
		r.Blocked = map[string]string{"pathlib": "the result of the run: files are off in this sandbox", "zipfile": "the result of the run", "gzip": "the result of the run"}
		for name, hint := range blockedModules {
			r.Blocked[name] = hint
		}
	}
	return r
}
