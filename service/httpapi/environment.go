package httpapi

import (
	"context"

	"glasshouse/sandbox"
)

type environmentList struct {
	Environments []sandbox.Environment `json:"environments"`
}

type packageList struct {
	Environment string            `json:"environment"`
	Packages    []sandbox.Package `json:"packages"`
}

func (a *api) environments(group place) {
	type one struct {
		Name string `path:"name" maxLength:"63"`
	}
	route(a, group, "GET", "/environments", "The environments that a sandbox may choose, the default one first", func(_ context.Context, _ sandbox.Key, _ *struct{}) (*environmentList, error) {
		return &environmentList{a.service.Environments.Environments()}, nil
	})
	route(a, group, "GET", "/environments/{name}/packages", "What is installed in an environment", func(_ context.Context, _ sandbox.Key, in *one) (*packageList, error) {
		list, err := a.service.Environments.Packages(in.Name)
		return &packageList{in.Name, list}, err
	})
	route(a, group, "POST", "/environments/refresh", "Take up what `glasshouse env` has changed; for admins", func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*environmentList, error) {
		list, err := a.service.RefreshEnvironments(ctx, caller)
		return &environmentList{list}, err
	})
}
