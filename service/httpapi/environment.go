package httpapi

import (
	"context"
	"net/http"

	"glasshouse/sandbox"
)

type environmentList struct {
	Environments []sandbox.Environment `json:"environments"`
}

type packageList struct {
	Environment string            `json:"environment"`
	Packages    []sandbox.Package `json:"packages"`
}

type environmentInput struct {
	Name string `path:"name" maxLength:"63"`
}

func (a *api) routeEnvironments(r *routes) {
	route(a, r, r.describe("GET", "/environments", "listEnvironments", tagEnvironments,
		"List the environments that a sandbox may choose, the default first"), a.listEnvironments)
	route(a, r, r.describe("GET", "/environments/{name}/packages", "listPackages", tagEnvironments,
		"List the packages of an environment"), a.listPackages)
	route(a, r, r.describe("POST", "/environments/refresh", "refreshEnvironments", tagEnvironments,
		"Load what `glasshouse env` has changed; needs an admin's key", http.StatusForbidden), a.refreshEnvironments)
}

func (a *api) listEnvironments(context.Context, sandbox.Key, *struct{}) (*environmentList, error) {
	return &environmentList{a.live.Environments.Environments()}, nil
}

func (a *api) listPackages(_ context.Context, _ sandbox.Key, in *environmentInput) (*packageList, error) {
	list, err := a.live.Environments.Packages(in.Name)
	return &packageList{in.Name, list}, err
}

func (a *api) refreshEnvironments(ctx context.Context, caller sandbox.Key, _ *struct{}) (*environmentList, error) {
	list, err := a.live.RefreshEnvironments(ctx, caller)
	return &environmentList{list}, err
}
