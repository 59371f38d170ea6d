package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// QueryBody is a statement. It is exported because huma reads exported embedded fields only.
type QueryBody struct {
	Body struct {
		Query      string         `json:"query" minLength:"1" maxLength:"4000000" format:"sql"`
		Database   string         `json:"database,omitempty" doc:"A name of GET /databases; none: the default one"`
		Parameters sandbox.Object `json:"parameters,omitempty" doc:"The values of :name in the statement"`
	}
}

type sandboxQueryInput struct {
	InSandbox
	QueryBody
}

// DatabaseParam names the database of a request. It is exported because huma reads exported embedded fields only.
type DatabaseParam struct {
	Database string `query:"database" doc:"A name of GET /databases; none: the default one"`
}

type sandboxSchemaInput struct {
	InSandbox
	DatabaseParam
}

type databaseList struct {
	Databases []sandbox.DatabaseStatus `json:"databases"`
}

type queryResult struct {
	QueryHead
	Results json.RawMessage `json:"results" doc:"A list of objects, one for each row"`
	QueryTail
}

// QueryHead is the part of a result before its rows. It is exported because huma reads exported embedded fields only.
type QueryHead struct {
	Query      string         `json:"query"`
	Parameters map[string]any `json:"parameters"`
}

// QueryTail is the part of a result after its rows. It is exported as QueryHead is.
type QueryTail struct {
	Count            int       `json:"count"`
	Truncated        bool      `json:"truncated"`
	ComputedWithMask []string  `json:"computed_with_mask,omitempty" doc:"Masked columns that it used as ***"`
	Timestamp        time.Time `json:"timestamp"`
}

type databaseSchema struct {
	SandboxID string             `json:"sandbox_id,omitempty"`
	Schema    databaseSchemaBody `json:"schema"`
	Timestamp time.Time          `json:"timestamp"`
}

type databaseSchemaBody struct {
	Tables  []string                         `json:"tables"`
	Schema  map[string][]sandbox.TableColumn `json:"schema" doc:"The columns of each table"`
	Details map[string]sandbox.Table         `json:"details" doc:"Type, comment, keys and estimated rows of each table"`
	Total   int                              `json:"total_tables"`
}

type analyzeInput struct {
	Table string `query:"table_name"`
	Kind  string `query:"analysis_type" enum:"summary,schema,tables"`
	Limit int    `query:"limit" minimum:"0" maximum:"10000"`
	DatabaseParam
	Body *struct {
		Table    string `json:"table_name,omitempty"`
		Kind     string `json:"analysis_type,omitempty" enum:"summary,schema,tables" doc:"By default summary"`
		Limit    int    `json:"limit,omitempty" minimum:"1" maximum:"10000"`
		Database string `json:"database,omitempty" doc:"A name of GET /databases; none: the default one"`
	} `required:"false"`
}

const defaultAnalyzeLimit = 100 // rows

func (a *api) routeQueries(r *routes) {
	ok := &huma.Response{Description: "OK", Content: jsonContent[queryResult](r)}
	inSandbox := r.describe("POST", "/sandbox/{id}/database/query", "queryDatabaseInSandbox", tagDatabase,
		"Run one read-only statement under the policy of a sandbox", http.StatusForbidden, http.StatusGone)
	inSandbox.Responses["200"] = ok
	registerResponse(a, r, inSandbox,
		func(ctx context.Context, caller sandbox.Key, in *sandboxQueryInput) (*executionResponse, error) {
			return a.queryDatabase(ctx, caller, in.ID, &in.QueryBody)
		})
	query := r.describe("POST", "/database/query", "queryDatabase", tagDatabase, "Run one read-only statement",
		http.StatusForbidden)
	query.Responses["200"] = ok
	registerResponse(a, r, query,
		func(ctx context.Context, caller sandbox.Key, in *QueryBody) (*executionResponse, error) {
			return a.queryDatabase(ctx, caller, "", in)
		})
	route(a, r, r.describe("GET", "/sandbox/{id}/database/schema", "getDatabaseSchemaInSandbox", tagDatabase,
		"Get every table that may be read, with its columns", http.StatusForbidden, http.StatusGone),
		func(ctx context.Context, caller sandbox.Key, in *sandboxSchemaInput) (*databaseSchema, error) {
			return a.getDatabaseSchema(ctx, caller, in.ID, in.Database)
		})
	route(a, r, r.describe("GET", "/database/schema", "getDatabaseSchema", tagDatabase,
		"Get every table that may be read, with its columns", http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, in *DatabaseParam) (*databaseSchema, error) {
			return a.getDatabaseSchema(ctx, caller, "", in.Database)
		})
	route(a, r, r.describe("GET", "/databases", "listDatabases", tagDatabase,
		"List the databases that the key may use, the default one first"),
		func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*databaseList, error) {
			list, err := a.databases.Statuses(ctx, caller)
			return &databaseList{list}, err
		})
	route(a, r, r.describe("POST", "/sandbox/agent/analyze-data", "analyzeData", tagDatabase, "Analyze a table",
		http.StatusForbidden, http.StatusNotFound, http.StatusGone), a.analyzeData)
}

// queryDatabase runs a statement, in a sandbox unless sandboxID is "".
func (a *api) queryDatabase(
	ctx context.Context, caller sandbox.Key, sandboxID string, in *QueryBody,
) (*executionResponse, error) {
	parameters := map[string]any{}
	a.cpu.Compute(caller.User, len(in.Body.Parameters), func() {
		decoder := json.NewDecoder(bytes.NewReader(in.Body.Parameters))
		decoder.UseNumber()             // as float64, large integers would lose digits
		_ = decoder.Decode(&parameters) // it is an object, or nothing
	})
	rows := a.newRowEncoder(caller.User)
	summary, err := a.runs.Query(ctx, caller, run.Statement{
		SandboxID: sandboxID, Database: in.Body.Database, SQL: in.Body.Query, Parameters: parameters,
	}, rows.add)
	if err != nil {
		rows.close()
		return nil, err
	}
	return queryResponse(ctx, rows, QueryHead{in.Body.Query, parameters},
		QueryTail{summary.Rows, summary.Truncated, summary.ComputedWithMask, time.Now().UTC()}), nil
}

func (a *api) getDatabaseSchema(
	ctx context.Context, caller sandbox.Key, sandboxID, database string,
) (*databaseSchema, error) {
	if sandboxID != "" {
		if _, err := a.live.Sandbox(ctx, caller, sandboxID); err != nil {
			return nil, err
		}
	}
	tables, err := a.databases.Schema(ctx, caller, database)
	body := databaseSchemaBody{
		Tables: []string{}, Schema: map[string][]sandbox.TableColumn{}, Details: map[string]sandbox.Table{},
		Total: len(tables),
	}
	for _, t := range tables {
		body.Tables = append(body.Tables, t.Name)
		body.Schema[t.Name] = t.Columns
		t.Columns = nil
		body.Details[t.Name] = t
	}
	return &databaseSchema{sandboxID, body, time.Now().UTC()}, err
}

func (a *api) analyzeData(
	ctx context.Context, caller sandbox.Key, in *analyzeInput,
) (*sandbox.ExecutionAnswer, error) {
	if b := in.Body; b != nil {
		in.Table, in.Kind, in.Limit = cmp.Or(b.Table, in.Table), cmp.Or(b.Kind, in.Kind), max(b.Limit, in.Limit)
		in.Database = cmp.Or(b.Database, in.Database)
	}
	limit := cmp.Or(in.Limit, defaultAnalyzeLimit)
	e, err := a.runs.Analyze(ctx, caller, in.Database, in.Table, cmp.Or(in.Kind, "summary"), limit)
	if err != nil {
		return nil, err
	}
	return new(e.Answer()), nil
}
