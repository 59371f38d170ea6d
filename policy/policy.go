// Package policy defines what code in a sandbox may do, and its limits:
//
//	p, err := policy.Accept(config, policy.Default(), ceiling, environments, isAdmin)
//	rules := policy.Rules(p, addedModules) // imports and calls
//	hosts, err := policy.ParseHosts(p.AllowedHosts)
//
// A request may tighten what the operator allows and may not loosen it. The package also lists the SQL functions,
// operators, types and settings that statements may use. It consists of data and pure functions: it does no I/O
// and has no state.
package policy

// Profile names a set of rules for imports and calls in user code. Profiles give agents an early and helpful
// error. They do not protect the machine: the isolation layers protect the machine.
type Profile string

// The profiles. ProfileUnrestricted has no import rules; only an admin's key may choose it. ProfileNotebook is the same
// with notebooks' way to show values. ProfileCompat is plain Python, without import rules and helpers. Only the
// compatibility APIs use the last two, and no config may choose them.
const (
	ProfileAnalyst      Profile = "analyst"
	ProfileStrict       Profile = "strict"
	ProfileUnrestricted Profile = "unrestricted"
	ProfileCompat       Profile = "compat"
	ProfileNotebook     Profile = "notebook"
)

// WritePolicy decides how a statement that would write is handled.
type WritePolicy string

// WriteReject refuses the statement with a ReadOnlyError. WriteCapture stores the statement without running it, until
// an admin decides.
const (
	WriteReject  WritePolicy = "reject"
	WriteCapture WritePolicy = "capture"
)

// Record decides which runs are recorded without being asked to.
type Record string

// RecordNever records only debugged runs and those that ask for it. RecordAlways records each run of the sandbox.
const (
	RecordNever  Record = "never"
	RecordAlways Record = "always"
)

// Policy is the config of one sandbox. The struct tags are the API's schema. The operator's ceiling may be lower than
// a maximum in the tags.
type Policy struct {
	MaxExecutionTime int `json:"max_execution_time" required:"false" minimum:"1" maximum:"86400" doc:"Wall-clock seconds for one run"`
	MaxMemoryMB      int `json:"max_memory_mb" required:"false" minimum:"64" maximum:"1048576" doc:"Memory in MiB; memory that is shared with the warm interpreter is not counted"`
	CPUPercent       int `json:"cpu_percent" required:"false" minimum:"1" maximum:"6400" doc:"Maximum CPU time per second of wall-clock time; 100 is one CPU"`
	MaxOpenFiles     int `json:"max_open_files" required:"false" minimum:"16" maximum:"1024"`
	MaxThreads       int `json:"max_threads" required:"false" minimum:"1" maximum:"64"`
	MaxProcesses     int `json:"max_processes" required:"false" minimum:"1" maximum:"5"`
	MaxRows          int `json:"max_rows" required:"false" minimum:"1" maximum:"1000000" doc:"Rows of one query; further rows are dropped and truncated is set"`
	MaxOutputSize    int `json:"max_output_size" required:"false" minimum:"1024" maximum:"16777216" doc:"Bytes of stdout and of stderr, each; the middle of longer output is dropped"`
	MaxCodeSize      int `json:"max_code_size" required:"false" minimum:"1" maximum:"1048576" doc:"Bytes of code"`

	UploadMaxBytes    int64 `json:"upload_max_bytes" required:"false" minimum:"0" maximum:"1073741824" doc:"Bytes of all uploads"`
	UploadMaxFiles    int   `json:"upload_max_files" required:"false" minimum:"0" maximum:"100000" doc:"Number of uploads and of their folders"`
	WorkspaceMaxBytes int64 `json:"workspace_max_bytes" required:"false" minimum:"65536" maximum:"1073741824"`
	FileMaxBytes      int64 `json:"file_max_bytes" required:"false" minimum:"4096" maximum:"1073741824"`

	Lifetime    int `json:"lifetime" required:"false" minimum:"1" maximum:"604800" doc:"Seconds from creation"`
	IdleTimeout int `json:"idle_timeout" required:"false" minimum:"1" maximum:"604800" doc:"Seconds from the last use"`

	EnableDebugging         bool     `json:"enable_debugging" required:"false"`
	Record                  Record   `json:"record" required:"false" enum:"never,always" doc:"always: record every run"`
	SaveIntermediateResults bool     `json:"save_intermediate_results" required:"false" doc:"Keep notes and inspected values of each run in history"`
	EnableFileAccess        bool     `json:"enable_file_access" required:"false"`
	EnableNetworkAccess     bool     `json:"enable_network_access" required:"false" doc:"Allow connections to allowed_hosts, through the service's broker"`
	AllowedHosts            []string `json:"allowed_hosts" required:"false" nullable:"false" maxItems:"100" maxLength:"300" doc:"Names, *.names, addresses or ranges, each with an optional :port; 80 and 443 by default"`

	AllowedModules []string `json:"allowed_modules" required:"false" nullable:"false" maxItems:"1000" maxLength:"255" doc:"Only these modules; empty: those of the profile"`
	BlockedModules []string `json:"blocked_modules" required:"false" nullable:"false" maxItems:"1000" maxLength:"255" doc:"Modules to block in addition to those of the profile"`
	// OperatorModules are modules that the operator allows in addition to those of the profile; "*" is any. A config
	// cannot change it.
	OperatorModules []string    `json:"-"`
	Environment     string      `json:"environment" required:"false" format:"environment" minLength:"1" maxLength:"63" doc:"Name of the environment, which decides which packages are installed; GET /environments lists them"`
	Profile         Profile     `json:"profile" required:"false" enum:"analyst,strict,unrestricted"`
	WritePolicy     WritePolicy `json:"write_policy" required:"false" enum:"reject,capture"`
}

// Default returns the policy of a sandbox that is created without a config.
func Default() Policy {
	return Policy{
		MaxExecutionTime: 30, MaxMemoryMB: 256, CPUPercent: 50,
		MaxOpenFiles: 100, MaxThreads: 10, MaxProcesses: 5,
		MaxRows: 100_000, MaxOutputSize: 1 << 20, MaxCodeSize: 100_000,
		UploadMaxBytes: 5 << 20, UploadMaxFiles: 2000, WorkspaceMaxBytes: 64 << 20, FileMaxBytes: 50 << 20,
		Lifetime: 3600, IdleTimeout: 600,
		EnableDebugging: true, Record: RecordNever, SaveIntermediateResults: true, EnableFileAccess: true,
		AllowedHosts: []string{}, AllowedModules: []string{}, BlockedModules: []string{},
		Environment: "default", Profile: ProfileAnalyst, WritePolicy: WriteReject,
	}
}
