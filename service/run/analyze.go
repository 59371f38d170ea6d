package run

import (
	"context"
	"encoding/json"

	"glasshouse/sandbox"
	"glasshouse/service/help"
)

// Analyze runs help/analyze.py in a new sandbox. database is the name of a database; "" means the caller's default.
// kind is "summary", "schema", or "tables", which lists the tables. limit is the number of rows of the sample.
func (s *Service) Analyze(
	ctx context.Context, caller sandbox.Key, database, table, kind string, limit int,
) (*sandbox.Execution, error) {
	if table == "" && kind != "tables" {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "table_name",
			Detail: "table_name is missing: name the table; analysis_type \"tables\" lists all tables",
		}
	}
	input, err := json.Marshal(map[string]any{
		"database": database, "table_name": table, "analysis_type": kind, "limit": limit,
	})
	if err != nil {
		return nil, err
	}
	request := sandbox.Request{Code: help.File("analyze.py"), Context: input, Kind: sandbox.KindAnalyze}
	return s.QuickExecute(ctx, caller, request, nil)
}
