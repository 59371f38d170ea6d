package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"glasshouse/sandbox"
)

type queryInput struct {
	InSandbox
	Body struct {
		Query      string         `json:"query" minLength:"1"`
		Parameters map[string]any `json:"parameters,omitempty"`
	}
	RawBody []byte
}

type queryResult struct {
	Query      string          `json:"query"`
	Parameters map[string]any  `json:"parameters"`
	Results    json.RawMessage `json:"results" doc:"A list of objects, one for each row"`
	Count      int             `json:"count"`
	Truncated  bool            `json:"truncated"`
	Timestamp  time.Time       `json:"timestamp"`
}

type databaseSchema struct {
	SandboxID string             `json:"sandbox_id"`
	Schema    databaseSchemaBody `json:"schema"`
	Timestamp time.Time          `json:"timestamp"`
}

type databaseSchemaBody struct {
	Tables  []string                         `json:"tables"`
	Schema  map[string][]sandbox.TableColumn `json:"schema" doc:"The columns of each table"`
	Details map[string]sandbox.Table         `json:"details" doc:"The type, comment, keys and estimated rows of each table"`
	Total   int                              `json:"total_tables"`
}

type analyzeInput struct {
	Table string `query:"table_name"`
	Kind  string `query:"analysis_type"`
	Limit int    `query:"limit" minimum:"0" maximum:"10000"`
	Body  *struct {
		Table string `json:"table_name,omitempty"`
		Kind  string `json:"analysis_type,omitempty" doc:"summary, schema, or anything else for the list of tables"`
		Limit int    `json:"limit,omitempty" minimum:"1" maximum:"10000"`
	} `required:"false"`
}

const defaultAnalyzeLimit = 100 // rows

func (a *api) routeQueries(r *routes) {
	route(a, r, r.describe("POST", "/sandbox/{id}/database/query", "queryDatabase", tagDatabase,
		"Run one read-only statement",
		http.StatusForbidden, http.StatusGone), a.queryDatabase)
	route(a, r, r.describe("GET", "/sandbox/{id}/database/schema", "getDatabaseSchema", tagDatabase,
		"Get every table that may be read, with its columns", http.StatusForbidden, http.StatusGone),
		a.getDatabaseSchema)
	route(a, r, r.describe("POST", "/sandbox/agent/analyze-data", "analyzeData", tagDatabase, "Analyze a table",
		http.StatusForbidden, http.StatusNotFound, http.StatusGone), a.analyzeData)
}

func (a *api) queryDatabase(ctx context.Context, caller sandbox.Key, in *queryInput) (*queryResult, error) {
	// The parameters are decoded again with json.Number: as float64, large integers would lose digits.
	var body struct {
		Parameters map[string]any `json:"parameters"`
	}
	decoder := json.NewDecoder(bytes.NewReader(in.RawBody))
	decoder.UseNumber()
	_ = decoder.Decode(&body) // huma has decoded it once
	var rows rowEncoder
	summary, err := a.service.Query(ctx, caller, in.ID, in.Body.Query, body.Parameters, rows.add)
	if err != nil {
		return nil, err
	}
	if body.Parameters == nil {
		body.Parameters = map[string]any{}
	}
	result := queryResult{
		in.Body.Query,
		body.Parameters,
		rows.json(),
		summary.Rows,
		summary.Truncated,
		time.Now().UTC(),
	}
	return &result, nil
}

func (a *api) getDatabaseSchema(ctx context.Context, caller sandbox.Key, in *InSandbox) (*databaseSchema, error) {
	tables, err := a.service.Schema(ctx, caller, in.ID)
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
	return &databaseSchema{in.ID, body, time.Now().UTC()}, err
}

func (a *api) analyzeData(ctx context.Context, caller sandbox.Key, in *analyzeInput) (*sandbox.Execution, error) {
	if b := in.Body; b != nil {
		in.Table, in.Kind, in.Limit = cmp.Or(b.Table, in.Table), cmp.Or(b.Kind, in.Kind), max(b.Limit, in.Limit)
	}
	return a.service.Analyze(ctx, caller, in.Table, cmp.Or(in.Kind, "summary"), cmp.Or(in.Limit, defaultAnalyzeLimit))
}
