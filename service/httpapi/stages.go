package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/run"
)

type stagesInput struct {
	Body struct {
		SQL        string         `json:"sql" minLength:"1" maxLength:"4000000" format:"sql" doc:"A SELECT"`
		Database   string         `json:"database,omitempty" doc:"A name of GET /databases; none: the default one"`
		Parameters sandbox.Object `json:"params,omitempty" doc:"The values of :name in the statement"`
		Samples    bool           `json:"samples,omitempty" doc:"With up to 5 rows after each stage"`
		All        bool           `json:"all,omitempty" doc:"Also what takes long, and in text what is only possible"`
	}
}

type keptStagesInput struct {
	InExecution
	Number int `path:"n" minimum:"1" doc:"The number of the statement in queries, from 1"`
}

type stagesOfInput struct {
	InExecution
	Number int `path:"n" minimum:"1" doc:"The number of the statement in queries, from 1"`
	Body   *struct {
		Samples bool `json:"samples,omitempty" doc:"With up to 5 rows after each stage"`
		All     bool `json:"all,omitempty" doc:"Also what takes long, and in text what is only possible"`
	} `required:"false"`
}

func (a *api) routeStages(r *routes) {
	route(a, r, r.describe("POST", "/database/stages", "countStages", tagDatabase,
		"Run one read-only statement, and count the rows after each table, join, condition and group of it",
		http.StatusForbidden), a.countStages)
	route(a, r, r.describe("POST", "/executions/{id}/queries/{n}/stages", "countStagesOfQuery", tagDatabase,
		"Count the rows after each stage of a statement of an execution, with its parameters and the data of now",
		http.StatusForbidden), a.countStagesOf)
	route(a, r, r.describe("GET", "/executions/{id}/queries/{n}/stages", "getStagesOfQuery", tagDatabase,
		"Get the stages of a statement of an execution, as they were counted last", http.StatusForbidden,
		http.StatusGone), a.keptStages)
}

func (a *api) countStages(ctx context.Context, caller sandbox.Key, in *stagesInput) (*stages.Stages, error) {
	parameters := map[string]any{}
	a.cpu.Compute(caller.User, len(in.Body.Parameters), func() {
		decoder := json.NewDecoder(bytes.NewReader(in.Body.Parameters))
		decoder.UseNumber()             // as float64, large integers would lose digits
		_ = decoder.Decode(&parameters) // it is an object, or nothing
	})
	statement := run.Statement{Database: in.Body.Database, SQL: in.Body.SQL, Parameters: parameters}
	return a.runs.Stages(ctx, caller, statement, stages.Options{Samples: in.Body.Samples, All: in.Body.All})
}

func (a *api) countStagesOf(ctx context.Context, caller sandbox.Key, in *stagesOfInput) (*stages.Stages, error) {
	var o stages.Options
	if in.Body != nil {
		o = stages.Options{Samples: in.Body.Samples, All: in.Body.All}
	}
	return a.runs.StagesOf(ctx, caller, in.ID, in.Number, o)
}

func (a *api) keptStages(ctx context.Context, caller sandbox.Key, in *keptStagesInput) (*stages.Stages, error) {
	return a.runs.KeptStages(ctx, caller, in.ID, in.Number)
}
