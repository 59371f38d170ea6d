package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/supervisor"
)

// ReplayOptions say how an execution runs again.
type ReplayOptions struct {
	Code    *string // runs in place of the original's; nil: the original's
	RowsNow bool    // take rows as they are in the database now, and not from the log
	Edits   []RowEdit
	Record  bool // record the run, so that it can be stepped and explained
	// Environment is the name of the one in which the code runs; "": that of the original, with its packages of now.
	Environment string

	facts *factSearch // nil: the values are not looked at
}

// RowEdit gives a statement other rows than it returned.
type RowEdit struct {
	Statement int             `json:"statement" minimum:"1" doc:"Its number in the execution, from 1"`
	Rows      json.RawMessage `json:"rows" doc:"A list of objects; a column that an object does not have is NULL"`
}

// isEdited reports whether the code may send other requests than the original.
func (o *ReplayOptions) isEdited() bool {
	return o.Code != nil || o.RowsNow || len(o.Edits) > 0 || o.Environment != ""
}

// Bounds of a replay.
const (
	maxEarlierRuns   = 1000             // of the session, which run first
	maxRestoreTime   = 60 * time.Second // of them together
	maxDifferences   = 20
	maxDifferentText = 500 // bytes of a text in a difference

	maxLiveStatements = 100 // that an answer names
)

// Replay runs an ended execution again in a new sandbox with the policy of the original, with the inputs of its log,
// and compares both. In a session, the earlier executions that ran in the same process run first. The log answers the
// requests of the code, and refuses rows that the caller may not read today. The new execution has the kind replay, and
// belongs to the caller. Replay returns FaultBusy if the execution runs, FaultGone if its inputs are not kept, as those
// of a replay, FaultInvalid if it ran no code, and the errors of Execute.
func (s *Service) Replay(
	ctx context.Context, caller sandbox.Key, id string, o ReplayOptions,
) (*sandbox.Execution, error) {
	return s.replayObserved(ctx, caller, id, o, observers{})
}

// StartReplay starts a replay as Start starts code. Its errors are those of Replay.
func (s *Service) StartReplay(
	ctx context.Context, caller sandbox.Key, id string, o ReplayOptions,
) (*EventLog, error) {
	return s.start(ctx, func(ctx context.Context, log *EventLog) (*sandbox.Execution, error) {
		return s.replayObserved(ctx, caller, id, o, observers{events: log})
	})
}

func (s *Service) replayObserved(
	ctx context.Context, caller sandbox.Key, id string, o ReplayOptions, observed observers,
) (*sandbox.Execution, error) {
	original, err := s.Records.Execution(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	switch {
	case original.CompletedAt == nil:
		return nil, sandbox.Errorf(sandbox.FaultBusy, "the execution runs: wait for its end, or cancel it")
	case original.Kind == sandbox.KindReplay:
		return nil, errIsReplay(&original)
	case original.Kind == sandbox.KindRestore:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "the execution restored a session and ran no code of its "+
			"own: replay one of the session's executions")
	case original.Kind == sandbox.KindQuery || original.Environment == nil:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "none of the execution's code ran, so it cannot run again")
	}
	log, err := s.loadInputs(ctx, &original)
	if err != nil {
		return nil, err
	}
	earlier, err := s.earlierRuns(ctx, &original)
	if err != nil {
		return nil, err
	}
	if err := o.facts.check(&original, earlier); err != nil {
		return nil, err
	}
	p, isEphemeral, err := s.policyOf(ctx, caller, &original)
	if err != nil {
		return nil, err
	}
	// Other code may run than the original's, with other packages.
	if p, err = s.Live.Restrict(caller, p, o.Environment); err != nil {
		return nil, err
	}
	if o.Record {
		p.EnableDebugging = true
	}
	replayed := &replayInputs{
		service: s, caller: caller, original: &original, log: log, earlier: earlier, options: o,
		player: s.InputKeys.Replay(log, o.isEdited()), permitted: map[string]error{}, usedEdits: map[int]bool{},
	}
	if replayed.edited, err = editedStatements(log, o.Edits); err != nil {
		return nil, err
	}
	request, err := s.requestOf(&original, log)
	if err != nil {
		return nil, err
	}
	request.Kind, request.Record = sandbox.KindReplay, o.Record
	if o.facts != nil {
		request.Facts, request.Cell, replayed.found = o.facts.lines, o.facts.path, o.facts
		request.Timeout = factsTimeout(&original)
	}
	request.Annotations = request.OfReplay()
	if o.Code != nil {
		request.Code = *o.Code
	}
	p.EnableNetworkAccess, p.AllowedHosts = false, nil // it would change the world again
	warmFor := ""                                      // as it was for the original: an import draws randomness
	if isEphemeral {
		warmFor = original.Code
	}
	open := func(ctx context.Context, sb sandbox.Sandbox) (*supervisor.Session, error) {
		return s.Live.Supervisor.Open(ctx, sb, warmFor)
	}
	lease, err := s.Live.AcquireEphemeral(caller, p, "", open)
	if err != nil {
		return nil, err
	}
	observed.replay = replayed
	return s.executeIn(ctx, caller, lease, request, observed)
}

// errIsReplay returns the error for the replay of a replay.
func errIsReplay(e *sandbox.Execution) error {
	original := "its original"
	if e.Replay != nil {
		original += ", execution " + e.Replay.Of + ","
	}
	return sandbox.Errorf(sandbox.FaultGone, "the execution is a replay, and a replay keeps no inputs of its own: "+
		"replay %s with the same code, rows and edits", original)
}

// requestOf returns the request of an execution.
func (s *Service) requestOf(e *sandbox.Execution, log *inputlog.Log) (sandbox.Request, error) {
	request := sandbox.Request{Code: e.Code, Context: sandbox.Object(e.Context), Annotations: e.Annotations}
	if e.InputLog.Scope != nil {
		request.Scope = *e.InputLog.Scope
	}
	for _, f := range log.Files {
		request.Files = append(request.Files, sandbox.RequestFile{Path: f.Path, Base64: f.Body})
	}
	var err error
	request.Scope.Environ, err = s.InputKeys.Variables(log)
	return request, err
}

// policyOf returns the policy of the sandbox in which an execution ran, and whether it existed for this execution only.
func (s *Service) policyOf(
	ctx context.Context, caller sandbox.Key, e *sandbox.Execution,
) (p policy.Policy, isEphemeral bool, err error) {
	if len(e.InputLog.Policy) > 0 {
		err = json.Unmarshal(e.InputLog.Policy, &p)
		return p, true, err
	}
	sb, err := s.Records.Sandbox(ctx, caller, e.SandboxID)
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		return s.Live.Default, true, nil
	}
	return sb.Policy, sb.Ephemeral, err
}

// replayInputs are the inputs of an execution that runs again: the supervisor.Inputs of the run, whose goroutine uses
// them.
type replayInputs struct {
	service  *Service
	caller   sandbox.Key
	original *sandbox.Execution
	log      *inputlog.Log
	earlier  []sandbox.Execution // of the session
	options  ReplayOptions
	player   *inputlog.Player
	edited   map[int]editedStatement // by the number of the statement
	handler  *guestHandler           // records the statements that the log answers; nil: they are not recorded

	firstQuery int // of the replay in the record, which also has those of earlier runs

	permitted map[string]error  // of statements: why the caller may not read their logged rows
	asked     *inputlog.Request // that the handler answers now; nil: the original has none
	answer    []byte            // frames of its answer
	live      *inputlog.Request // the last request, as the code sent it, if the handler answers it
	recorded  int               // statements before it
	hasLive   bool              // the database of now has answered a statement
	liveRows  []int             // such statements, by their numbers from 1
	usedEdits map[int]bool      // by the number of the statement

	found *factSearch // gets the facts that the run finds; nil: it looks for none

	differences []sandbox.Difference // in the rows of statements
	sources     []string
	restored    *sandbox.Restored
}

// Seed implements supervisor.Inputs.
func (p *replayInputs) Seed() string {
	if slices.Contains(p.original.InputLog.Unlogged, SourceNetwork) {
		return ""
	}
	return p.service.InputKeys.Seed(p.original.ID)
}

// Clock implements supervisor.Inputs.
func (p *replayInputs) Clock() []byte { return append([]byte{}, p.log.Clock...) }

// Request answers a request from the log. The handler answers one that the log does not keep.
func (p *replayInputs) Request(ctx context.Context, body []byte) (answer []byte, err error) {
	p.endRequest()
	match, err := p.player.Next(body)
	if diverged, ok := errors.AsType[*inputlog.Diverged](err); ok {
		return nil, &sandbox.Refusal{Reason: "replay-diverged", Failed: true, Message: diverged.Error()}
	}
	if err != nil {
		return nil, err
	}
	logged := match.Logged
	if logged == nil || match.IsRepeat && p.isCaptured(logged) {
		p.beginLive(&match.Sent)
		return nil, nil
	}
	if edited, ok := p.edited[logged.Statement]; ok && logged.HasRows {
		p.usedEdits[logged.Statement] = true
		if err := p.permit(ctx, logged); err != nil {
			return nil, err
		}
		p.handler.edited = &edited
		return nil, nil
	}
	if !logged.IsKept || logged.HasRows && p.options.RowsNow {
		p.beginLive(&match.Sent)
		if !match.IsRepeat { // the rows of a repeated statement would differ twice
			p.asked = logged
		}
		return nil, nil
	}
	if err := p.permit(ctx, logged); err != nil {
		return nil, err
	}
	if logged.HasRows && p.handler != nil {
		p.handler.replayed(logged, p.original.Queries)
	}
	return logged.Answer, nil
}

// Answered keeps the answer to a request that the log has in another form.
func (p *replayInputs) Answered(_ int, frames func() []byte) {
	if p.asked != nil && p.asked.IsComparable() && len(p.answer) <= inputlog.MaxBytes {
		p.answer = append(p.answer, frames()...)
	}
}

// isCaptured reports whether a statement of the original is a write that waits for an admin. The log answers it once:
// to send it again would be another write.
func (p *replayInputs) isCaptured(logged *inputlog.Request) bool {
	n, list := logged.Statement, p.original.Queries
	return logged.HasRows && n > 0 && n <= len(list) && list[n-1].Status == "captured"
}

// beginLive begins a request that the handler answers now.
func (p *replayInputs) beginLive(sent *inputlog.Request) {
	p.live = sent
	if p.handler != nil {
		p.recorded = len(p.handler.queries)
	}
}

// endLive notes whether the database of now has answered the last request.
func (p *replayInputs) endLive() {
	live := p.live
	p.live = nil
	switch {
	case live == nil || live.What == "history":
	case live.What != "query" && live.What != "stages": // names of tables or columns
		p.addSource(SourceDatabase)
	case p.handler == nil || len(p.handler.queries) == p.recorded: // it is not recorded
		p.addSource(SourceDatabase)
		p.hasLive = true
	default:
		if s := p.handler.queries[p.recorded].Status; s == "refused" || s == "captured" { // no database has run it
			return
		}
		p.addSource(SourceDatabase)
		p.hasLive = true
		if len(p.liveRows) < maxLiveStatements {
			p.liveRows = append(p.liveRows, p.recorded-p.firstQuery+1)
		}
	}
}

// endRequest notes who has answered the last request, and compares the answer with the log's.
func (p *replayInputs) endRequest() {
	p.endLive()
	asked := p.asked
	if asked == nil {
		return
	}
	answer := p.answer
	p.asked, p.answer = nil, nil
	p.addSource(SourceDatabase)
	if !asked.IsComparable() {
		p.addSource(SourceRows) // they were too large to be compared
		return
	}
	if !asked.Equals(answer) {
		p.differences = append(p.differences, sandbox.Difference{
			Part:     fmt.Sprintf("statements[%d].rows", asked.Statement),
			Original: "the rows of " + p.original.CreatedAt.Format(time.RFC3339), Replay: "the rows of now are others",
		})
	}
}

func (p *replayInputs) addSource(source string) {
	if !slices.Contains(p.sources, source) {
		p.sources = append(p.sources, source)
	}
}

// permit returns an error unless the caller and the owner of the execution may still read the logged rows of a
// statement: both may use the database today, which lets the caller run it, and hides no other column than it did.
func (p *replayInputs) permit(ctx context.Context, logged *inputlog.Request) error {
	if logged.Database == "" {
		return nil // no database has answered
	}
	key := logged.Database + "\x00" + logged.SQL
	err, isKnown := p.permitted[key]
	if !isKnown {
		err = p.service.permitted(ctx, p.caller, p.original.User, logged)
		p.permitted[key] = err
	}
	if err != nil {
		p.addSource(SourceRights)
	}
	return err
}

// permitted returns why the caller may not read what a database answered to an owner's execution; nil: the caller may.
func (s *Service) permitted(
	ctx context.Context, caller sandbox.Key, owner string, logged *inputlog.Request,
) error {
	db, err := s.Databases.Find(caller, logged.Database)
	if err != nil {
		return err
	}
	if owner != caller.User { // whose key was looked at just now
		may, err := s.Access.MayUserSeeDatabase(ctx, owner, db.Name)
		if err != nil {
			return err
		}
		if !may {
			return withheld("no key of the user " + owner + ", whose execution it is, may use the database any more")
		}
	}
	if logged.Ran == "" {
		return nil // names of tables or columns; or the statement was refused, or failed before it ran
	}
	ran, err := db.Reader.Permit(ctx, logged.SQL, logged.Names, sandbox.QueryLimits{User: caller.User})
	if refusal, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return withheld("you may not run it any more: " + refusal.Message)
	}
	if err != nil {
		return err
	}
	if inputlog.RanHash(ran) != logged.Ran {
		return withheld("other columns are masked today: replay it with the rows of now")
	}
	return nil
}

// withheld returns the refusal of rows that the log has.
func withheld(why string) error {
	return &sandbox.Refusal{
		Reason: "replay-rights", Failed: true, Message: "what the database answered is kept, but " + why,
	}
}

// replayed records a statement that a log has answered.
func (h *guestHandler) replayed(logged *inputlog.Request, original []sandbox.Query) {
	if h.queryTexts == nil {
		h.queryTexts = map[queryText]bool{}
	}
	if logged.Statement < 1 || logged.Statement > len(original) {
		h.droppedQueries++
		return
	}
	q := original[logged.Statement-1]
	q.StartedAt, q.DurationMS, q.Step = h.service.Clock(), 0, 0
	if h.recorded != nil {
		q.Step = h.recorded.Steps()
	}
	h.queries = append(h.queries, q)
	h.queryTexts[textOf(&q)] = true
	if h.events != nil {
		h.events.query(q)
	}
}

// report compares the replay, which has ended, with the original.
func (p *replayInputs) report(e *sandbox.Execution) *sandbox.Replay {
	p.endRequest()
	out := &sandbox.Replay{
		Of: p.original.ID, Grade: sandbox.ReplayIdentical, Rows: "log", Restored: p.restored,
		IsEdited:    p.options.Code != nil && *p.options.Code != p.original.Code || len(p.edited) > 0,
		Environment: p.options.Environment,
	}
	switch {
	case p.options.RowsNow:
		out.Rows = "now"
	case p.hasLive:
		out.Rows, out.StatementsNow = "mixed", p.liveRows
	}
	if len(p.usedEdits) < len(p.edited) {
		p.addSource(SourceEdits)
	}
	for _, source := range p.original.InputLog.Unlogged {
		p.addSource(source)
	}
	if was, is := p.original.Environment, e.Environment; was != nil && is != nil && was.Digest != is.Digest {
		p.addSource(SourceEnvironment)
	}
	queries := e.Queries[min(p.firstQuery, len(e.Queries)):]
	out.Differences = append(p.differences, compareExecutions(p.original, e, queries)...)
	if len(out.Differences) > maxDifferences {
		out.Differences = out.Differences[:maxDifferences]
	}
	if len(out.Differences) > 0 || p.player.Unused() > 0 && !out.IsEdited {
		out.Grade = sandbox.ReplayDiffers
	}
	if d := p.player.Diverged(); d != nil {
		out.Grade = sandbox.ReplayDiverged
		out.Diverged = &sandbox.Divergence{Request: d.Number, Replay: textOfRequest(&d.Got)}
		if d.Want != nil {
			out.Diverged.Original = textOfRequest(d.Want)
		}
	}
	if out.Grade != sandbox.ReplayIdentical && !out.IsEdited && len(p.sources) == 0 {
		p.addSource(SourceUnknown)
	}
	slices.Sort(p.sources)
	out.Sources = p.sources
	return out
}

// textOfRequest describes a request of the code.
func textOfRequest(q *inputlog.Request) string {
	text := strings.TrimSpace(q.What + " " + q.Table)
	if q.What == "query" {
		text = q.SQL
		if len(q.Names) > 0 {
			text += " (or other values of its parameters)"
		}
	}
	return sandbox.Shorten(text, maxDifferentText)
}
