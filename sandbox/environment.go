package sandbox

import "glasshouse/policy"

// Environment is the current version of a set of packages that code may run with.
type Environment struct {
	Name     string   `json:"name"`
	Digest   string   `json:"digest" doc:"SHA-256 of its lock file: environments with the same digest have the same packages"`
	Python   string   `json:"python" doc:"Version of its interpreter"`
	Packages int      `json:"packages" doc:"Number of packages"`
	Modules  []string `json:"modules" doc:"Modules that code may import beyond those of a profile, from packages that the operator added"`
}

// ModulesOf returns the modules that the operator has added to each environment, by its name.
func ModulesOf(environments []Environment) policy.Environments {
	all := policy.Environments{}
	for _, e := range environments {
		all[e.Name] = e.Modules
	}
	return all
}

// EnvironmentVersion is the version of an environment that something ran with.
type EnvironmentVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest" doc:"SHA-256 of its lock file"`
}

// Package is a package that is installed in an environment.
type Package struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Summary string   `json:"summary"`
	Modules []string `json:"modules" doc:"Names to import it by"`
}
