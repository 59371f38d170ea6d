package mcpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
)

// Limits of the tools' arguments.
const (
	defaultWait = 55  // seconds; hosts end a call after 60
	maxWait     = 300 // seconds
	defaultRows = 100
	maxRows     = 1000
)

// longArguments are the arguments whose length package run limits. Every other text is a name. The schemas do not
// state the limit of a name: no model sends a longer one, and each model pays for the schemas.
var longArguments = []string{"code", "sql", "text", "base64"}

// addTools adds the eleven tools. Their descriptions and schemas are what every model reads before its first call, so
// each says when to use the tool, what it costs, and what to do next, in few words.
func (s *Server) addTools() {
	no, yes := new(false), new(true)
	readOnly := func(title string) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: no}
	}
	addTool(s, &mcp.Tool{
		Name: "run_python",
		Description: "Run Python in a sandbox with pandas, numpy and matplotlib. Variables, imports and files " +
			"stay in the session: pass the session_id of an earlier answer to go on. " +
			"await db_query(sql, {\"name\": value}), with :name in sql, returns rows as dicts, and db_frame the " +
			"same a DataFrame; both take database=\"NAME\" for another database, and only read. Answers with " +
			"what was printed, the value of the last expression, and figures as images. Print summaries, not " +
			"whole tables. Save files that are wanted later to /session/artifacts. No network. If the run " +
			"fails, use the hint and the variables in the answer. If status=running, call get_execution.",
		InputSchema: schema(`{
			"code":{"type":"string","description":"Body of one module; await works at top level"},
			"session_id":{"type":"string","description":"Omit for a new session"},
			"timeout_seconds":{"type":"number","minimum":1,"maximum":300,"description":"Limit of the run; default 30"},
			"files":{"type":"object","additionalProperties":{"type":"string"},
				"description":"Text files by name, put into /data first"},
			"wait_seconds":{"type":"number","minimum":0,"maximum":300,
				"default":55,"description":"A longer run answers status=running"},
			"record":{"type":"boolean","description":"Record it, so that explain_execution can tell why a value is so"},
			`+annotationArguments()+`
		}`, "code"),
		Annotations: &mcp.ToolAnnotations{Title: "Run Python", DestructiveHint: no, OpenWorldHint: no},
	}, s.runPython)
	addTool(s, &mcp.Tool{
		Name: "query_database",
		Description: "Run one read-only SQL statement (PostgreSQL). Cheaper than run_python for a look at data. " +
			"Write :name for parameters. Answers with column names and rows. Aggregate in SQL rather than " +
			"raising limit. A refusal says why. If rows look wrong, ask explain_query.",
		InputSchema: schema(`{
			"sql":{"type":"string"},
			"params":{"type":"object","description":"Values of :name"},
			"database":{"type":"string","description":"Default: the first of describe_database"},
			"limit":{"type":"integer","minimum":1,"maximum":1000,"default":100,"description":"Rows at most"}
		}`, "sql"),
		Annotations: readOnly("Query the database"),
	}, s.queryDatabase)
	addTool(s, explainQueryTool(), s.explainQuery)
	addTool(s, &mcp.Tool{
		Name: "describe_database",
		Description: "List tables, or describe one. Call it before you write SQL. Start with no arguments (names " +
			"and sizes), then ask for one table. detail=full adds comments, keys and defaults.",
		InputSchema: schema(`{
			"table":{"type":"string"},
			"database":{"type":"string"},
			"like":{"type":"string","description":"Only tables or columns whose name contains this"},
			"detail":{"type":"string",
				"enum":["names","columns","full"],"description":"Default: names; columns for one table"}
		}`),
		Annotations: readOnly("Describe the database"),
	}, s.describeDatabase)
	addTool(s, &mcp.Tool{
		Name: "get_execution",
		Description: "Read an execution again: what an answer cut, or a run that was still running. part and " +
			"offset page through a long text; part=output:N shows a rich output.",
		InputSchema: schema(`{
			"execution_id":{"type":"string"},
			"part":{"type":"string",
				"pattern":"^(summary|stdout|stderr|result|queries|code|output:[0-9]+)$","default":"summary"},
			"offset":{"type":"integer","minimum":0,"default":0,"description":"In characters"},
			"wait_seconds":{"type":"number","minimum":0,"maximum":300,
				"default":0,"description":"Wait for the end of a running one"}
		}`, "execution_id"),
		Annotations: readOnly("Get an execution"),
	}, s.getExecution)
	addTool(s, &mcp.Tool{
		Name: "explain_execution",
		Description: "Find out why a run failed or why a value is wrong; needs no new code: failure (the " +
			"default), value:NAME (what made it, and what the expressions did, in numbers), value:PATH such as " +
			"value:t.loc['Oslo','price'] or value:rows[3]['x'] (the rows and cells behind it), line:N (what " +
			"happened there), step:N (all variables), " +
			"find:EXPRESSION (first step where it holds, such as find:total < 0). Without record=true the run runs " +
			"again first, with the same rows. If rows of a query look wrong, ask explain_query.",
		InputSchema: schema(`{
			"execution_id":{"type":"string"},
			"question":{"type":"string",
				"pattern":"^(failure|value:.+|line:[0-9]+|step:[0-9]+|find:.+)$","default":"failure"}
		}`, "execution_id"),
		Annotations: readOnly("Explain an execution"),
	}, s.explainExecution)
	addTool(s, &mcp.Tool{
		Name: "replay_execution",
		Description: "Run an ended execution again with the rows, clocks and randomness that it had, and compare: " +
			"identical, or what differs. With code, test a fix on the same data. rows=now asks the database again: " +
			"did the data change? edits: what if it were other data? The session does not change.",
		InputSchema: schema(`{
			"execution_id":{"type":"string"},
			"code":{"type":"string","description":"Runs in place of the original's"},
			"rows":{"type":"string","enum":["log","now"],"default":"log"},
			"edits":{"type":"array","items":{"type":"object","required":["statement","rows"],"properties":{
				"statement":{"type":"integer","minimum":1,"description":"Its number in the execution"},
				"rows":{"type":"array","items":{"type":"object"}}}},"description":"Other rows for statements"},
			"record":{"type":"boolean","description":"For explain_execution of the replay"},
			"environment":{"type":"string","description":"Packages of another environment"}
		}`, "execution_id"),
		Annotations: &mcp.ToolAnnotations{Title: "Replay an execution", DestructiveHint: no, OpenWorldHint: no},
	}, s.replayExecution)
	addTool(s, &mcp.Tool{
		Name: "fork_session",
		Description: "Copy a session with its variables and files, to try several ways from the same state. Answers " +
			"with the session_id of each copy. Its executions run again in each copy.",
		InputSchema: schema(`{
			"session_id":{"type":"string"},
			"count":{"type":"integer","minimum":1,"maximum":20,"default":1}
		}`, "session_id"),
		Annotations: &mcp.ToolAnnotations{Title: "Fork a session", DestructiveHint: no, OpenWorldHint: no},
	}, s.forkSession)
	addTool(s, &mcp.Tool{
		Name: "rollback_session",
		Description: "Undo: give a session the variables and files that it had before one of its executions. Later " +
			"changes are lost; get_execution still reads the executions.",
		InputSchema: schema(`{
			"session_id":{"type":"string"},
			"before":{"type":"string","description":"The execution_id of the first one to undo"}
		}`, "session_id", "before"),
		Annotations: &mcp.ToolAnnotations{Title: "Roll back a session", DestructiveHint: yes, OpenWorldHint: no},
	}, s.rollbackSession)
	addTool(s, &mcp.Tool{
		Name:        "cancel_execution",
		Description: "Stop a running execution. Its session stays.",
		InputSchema: schema(`{"execution_id":{"type":"string"}}`, "execution_id"),
		Annotations: &mcp.ToolAnnotations{
			Title:           "Cancel an execution",
			DestructiveHint: yes,
			IdempotentHint:  true,
			OpenWorldHint:   no,
		},
	}, s.cancelExecution)
	addTool(s, &mcp.Tool{
		Name: "session_files",
		Description: "List, read, write or delete the uploads of a session, which code reads in /data. Files " +
			"that code wrote to /session/artifacts are listed as artifacts and can be read.",
		InputSchema: schema(`{
			"session_id":{"type":"string"},
			"action":{"type":"string","enum":["list","read","write","delete"]},
			"path":{"type":"string"},
			"text":{"type":"string"},
			"base64":{"type":"string","description":"Instead of text, for binary content"}
		}`, "session_id", "action"),
		Annotations: &mcp.ToolAnnotations{Title: "Session files", DestructiveHint: yes, OpenWorldHint: no},
	}, s.sessionFiles)
}

// annotationArguments returns the JSON of the properties of a schema for sandbox.ModelAnnotations.
func annotationArguments() string {
	fields, err := jsonschema.For[sandbox.Annotations](nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of annotations: %v", err)) // a mistake in the struct
	}
	var properties []string
	for _, name := range slices.Sorted(maps.Keys(sandbox.ModelAnnotations)) {
		property := fields.Properties[name]
		property.Description = sandbox.ModelAnnotations[name]
		text, _ := json.Marshal(property) // never fails: it is plain data
		properties = append(properties, fmt.Sprintf("%q:%s", name, text))
	}
	return strings.Join(properties, ",")
}
