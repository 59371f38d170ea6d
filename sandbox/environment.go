package sandbox

// Environment is one set of packages that code may run with, as it is now.
type Environment struct {
	Name     string   `json:"name"`
	Digest   string   `json:"digest" doc:"SHA-256 of its lock: where it is the same, the packages are"`
	Python   string   `json:"python" doc:"Version of its interpreter"`
	Packages int      `json:"packages" doc:"How many there are"`
	Modules  []string `json:"modules" doc:"What code may import beyond the modules of a profile: those of the packages that the operator added"`
}

// EnvironmentVersion is an environment at one time: the one that something ran with.
type EnvironmentVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest" doc:"SHA-256 of its lock"`
}

// Package is one that is installed in an environment.
type Package struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Summary string   `json:"summary"`
	Modules []string `json:"modules" doc:"The names to import it by"`
}
