package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/sandbox"
)

// Page has the parameters of every list. It is exported because huma reads exported embedded fields only.
type Page struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	After string `query:"after" doc:"Value of next in the previous page"`
}

// OfUser selects records of a user in a time. It is exported as Page is.
type OfUser struct {
	User  string    `query:"user_id" doc:"Only records of this user; callers other than admins see only their own"`
	Since timestamp `query:"since" doc:"Only records from this time or later"`
	Until timestamp `query:"until" doc:"Only records from before this time"`
}

// OfExecution selects records of a sandbox or an execution. It is exported as Page is.
type OfExecution struct {
	Sandbox   string `query:"sandbox_id"`
	Execution string `query:"execution_id"`
}

func filterOf(p Page, u OfUser, e OfExecution) sandbox.RecordFilter {
	return sandbox.RecordFilter{
		User: u.User, Since: u.Since.Time, Until: u.Until.Time, SandboxID: e.Sandbox, ExecutionID: e.Execution,
		Limit: p.Limit, After: p.After,
	}
}

type sandboxesInput struct {
	Page
	OfUser
	Status string `query:"status" enum:"active,deleted,expired,lost"`
}

type sandboxList struct {
	Sandboxes []sandbox.SandboxSummary `json:"sandboxes"`
	Next      string                   `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type statementsInput struct {
	Page
	OfUser
	OfExecution
	Status      string `query:"status" enum:"ok,refused,failed,cancelled,captured"`
	Fingerprint string `query:"fingerprint"`
	Text        string `query:"text" maxLength:"200" doc:"Text in the statement"`
	DatabaseFilter
	TableFilter
	WorkFilter
}

type statementList struct {
	Statements []sandbox.Statement `json:"statements"`
	Next       string              `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

// DatabaseFilter selects statements by their database. It is exported because huma reads exported embedded fields only.
type DatabaseFilter struct {
	Database string `query:"database" doc:"The name of the database that they were sent to"`
}

// TableFilter selects statements by what they read. It is exported because huma reads exported embedded fields only.
type TableFilter struct {
	Table string `query:"table" maxLength:"300" doc:"A table or view in the statement, or in a view of it"`
}

// WorkFilter leaves out what people did to look at the work of others. It is exported as Page is.
type WorkFilter struct {
	IsWork bool `query:"work" doc:"true: leave out replays, and statements that ran only to explain one"`
}

type topStatementsInput struct {
	OfUser
	DatabaseFilter
	TableFilter
	WorkFilter
	Order string `query:"order" enum:"total,calls,mean,p95,rows,refused" default:"total" doc:"The largest number first"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

type topStatementList struct {
	Statements []sandbox.StatementStatistics `json:"statements"`
	Considered int64                         `json:"considered" doc:"Number of statements: the newest 100000 at most"`
	Since      time.Time                     `json:"since" doc:"The filter's, or 24 hours ago"`
}

type connectionsInput struct {
	Page
	OfUser
	OfExecution
	Host   string `query:"host"`
	Status string `query:"status" enum:"allowed,refused,failed"`
}

type connectionList struct {
	Connections []sandbox.ConnectionRecord `json:"connections"`
	Next        string                     `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type artifactRecordsInput struct {
	Page
	OfUser
	OfExecution
	Text string `query:"text" maxLength:"200" doc:"Text in the path"`
}

// artifactRecord is an artifact with its owner, which the lists of one sandbox need not name.
type artifactRecord struct {
	sandbox.Artifact
	User string `json:"user_id"`
}

type artifactRecordList struct {
	Artifacts []artifactRecord `json:"artifacts"`
	Next      string           `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type auditInput struct {
	Page
	User   string      `query:"user_id" doc:"Only actions of this user"`
	Since  timestamp   `query:"since" doc:"Only actions from this time or later"`
	Until  timestamp   `query:"until" doc:"Only actions from before this time"`
	Action auditAction `query:"action"`
	Object string      `query:"object" doc:"Such as execution/ID"`
}

// auditAction is an action that the audit log records.
type auditAction string

// Schema implements huma.SchemaProvider.
func (auditAction) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Enum: []any{
		"viewed", "exported", "applied", "rejected", "previewed", "resolved", "erased", "renamed", "created", "revoked",
	}}
	s.PrecomputeMessages()
	return s
}

type auditList struct {
	Entries []sandbox.AuditEntry `json:"entries"`
	Next    string               `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type systemStatus struct {
	Version string `json:"version"`
	sandbox.ServiceStatus
}

// topStatementsAge is the age of the statements that GET /statements/top considers without a filter.
const topStatementsAge = 24 * time.Hour

func (a *api) routeReview(r *routes) {
	route(a, r, r.describe("GET", "/sandboxes", "listSandboxes", tagReview,
		"List live and ended sandboxes, newest first"),
		func(ctx context.Context, caller sandbox.Key, in *sandboxesInput) (*sandboxList, error) {
			f := filterOf(in.Page, in.OfUser, OfExecution{})
			f.Status = in.Status
			list, next, err := a.records.Sandboxes(ctx, caller, f)
			return &sandboxList{list, next}, err
		})
	route(a, r, r.describe("GET", "/sandboxes/{id}", "getSandbox", tagReview,
		"Get a live or ended sandbox with its limits"),
		func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*sandbox.SandboxDetails, error) {
			details, err := a.records.SandboxDetails(ctx, caller, in.ID)
			if details.State == sandbox.StateActive {
				details.Isolation = a.live.Supervisor.Isolation().Level
			}
			return &details, err
		})
	route(a, r, r.describe("GET", "/statements", "listStatements", tagReview,
		"List the statements of ended executions, newest first"),
		func(ctx context.Context, caller sandbox.Key, in *statementsInput) (*statementList, error) {
			f := filterOf(in.Page, in.OfUser, in.OfExecution)
			f.Status, f.Fingerprint, f.Text, f.Database = in.Status, in.Fingerprint, in.Text, in.Database
			f.Table, f.IsWork = in.Table, in.IsWork
			list, next, err := a.records.Statements(ctx, caller, f)
			return &statementList{list, next}, err
		})
	route(a, r, r.describe("GET", "/statements/top", "listTopStatements", tagReview,
		"Sum up the statements of ended executions by fingerprint and database, the largest number first"),
		a.listTopStatements)
	route(a, r, r.describe("GET", "/connections", "listConnections", tagReview,
		"List the network connections of ended executions, newest first"),
		func(ctx context.Context, caller sandbox.Key, in *connectionsInput) (*connectionList, error) {
			f := filterOf(in.Page, in.OfUser, in.OfExecution)
			f.Host, f.Status = in.Host, in.Status
			list, next, err := a.records.Connections(ctx, caller, f)
			return &connectionList{list, next}, err
		})
	route(a, r, r.describe("GET", "/artifacts", "listAllArtifacts", tagReview,
		"List the artifacts of all sandboxes, all versions, newest first"),
		func(ctx context.Context, caller sandbox.Key, in *artifactRecordsInput) (*artifactRecordList, error) {
			f := filterOf(in.Page, in.OfUser, in.OfExecution)
			f.Text = in.Text
			list, next, err := a.records.ArtifactRecords(ctx, caller, f)
			out := &artifactRecordList{make([]artifactRecord, len(list)), next}
			for i, artifact := range list {
				out.Artifacts[i] = artifactRecord{artifact, artifact.User}
			}
			return out, err
		})
	route(a, r, r.describe("GET", "/audit", "listAudit", tagReview,
		"List who viewed, exported, applied, erased, created or revoked what, newest first; needs an admin's key",
		http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, in *auditInput) (*auditList, error) {
			f := filterOf(in.Page, OfUser{in.User, in.Since, in.Until}, OfExecution{})
			f.Action, f.Object = string(in.Action), in.Object
			list, next, err := a.records.AuditEntries(ctx, caller, f)
			return &auditList{list, next}, err
		})
	route(a, r, r.describe("GET", "/system", "getSystem", tagReview,
		"Get the state of the service: isolation, occupancy, history; needs an admin's key", http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*systemStatus, error) {
			status, err := a.runs.ServiceStatus(ctx, caller)
			return &systemStatus{a.version, status}, err
		})
}

func (a *api) listTopStatements(
	ctx context.Context, caller sandbox.Key, in *topStatementsInput,
) (*topStatementList, error) {
	f := filterOf(Page{Limit: in.Limit}, in.OfUser, OfExecution{})
	f.Database, f.Table, f.IsWork = in.Database, in.Table, in.IsWork
	if f.Since.IsZero() {
		f.Since = time.Now().UTC().Add(-topStatementsAge)
	}
	list, considered, err := a.records.TopStatements(ctx, caller, f, sandbox.StatementOrder(in.Order))
	return &topStatementList{list, considered, f.Since}, err
}
