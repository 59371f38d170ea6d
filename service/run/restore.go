package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/supervisor"
)

// earlierRuns returns the executions of the same process before e, the oldest first.
func (s *Service) earlierRuns(ctx context.Context, e *sandbox.Execution) ([]sandbox.Execution, error) {
	if e.InputLog.IsFirst {
		return nil, nil
	}
	list, err := s.runsBefore(ctx, sandbox.Base{SandboxID: e.SandboxID, Before: e.CreatedAt})
	if err == nil && len(list) == 0 {
		err = errFirstIsGone()
	}
	return list, err
}

func errFirstIsGone() error {
	return sandbox.Errorf(sandbox.FaultGone,
		"the session cannot be restored: its first execution is no longer kept; create another sandbox")
}

// runsBefore returns the executions that made a state, the oldest first. It includes those that the end of the service
// cut, although they have left nothing that is known.
func (s *Service) runsBefore(ctx context.Context, base sandbox.Base) (list []sandbox.Execution, err error) {
	filter := sandbox.ExecutionFilter{SandboxID: base.SandboxID, Limit: 100}
	defer func() { slices.Reverse(list) }()
pages:
	for {
		page, next, err := s.History.Executions(ctx, filter)
		if err != nil {
			return nil, err
		}
		for n := range page {
			e := &page[n]
			wasCut := e.Usage.EndedBy == "shutdown"
			switch {
			case !e.CreatedAt.Before(base.Before) || e.CompletedAt == nil || e.Environment == nil && !wasCut:
				continue
			case wasCut:
				list = append(list, *e)
				continue
			case e.SessionReset:
				return list, nil
			case e.InputLog == nil:
				return nil, sandbox.Errorf(sandbox.FaultGone, "the session cannot be restored: the inputs of its "+
					"execution %s were not kept; create another sandbox", e.ID)
			}
			if e.InputLog.Base != nil {
				list, base = append(list, *e), *e.InputLog.Base
				filter.SandboxID, filter.After = base.SandboxID, ""
				continue pages
			}
			list = append(list, *e)
			if e.InputLog.IsFirst {
				return list, nil
			}
			if len(list) > maxEarlierRuns {
				return nil, sandbox.Errorf(sandbox.FaultTooLarge, "the session cannot be restored: it has more than "+
					"%d executions; create another sandbox", maxEarlierRuns)
			}
		}
		if next == "" {
			if slices.ContainsFunc(list, func(e sandbox.Execution) bool { return e.Usage.EndedBy != "shutdown" }) {
				return nil, errFirstIsGone()
			}
			return list, nil
		}
		filter.After = next
	}
}

// restore makes the state of a session before the code of a run: it runs the executions that made it, in an empty
// session.
func (r *run) restore(ctx context.Context, base sandbox.Base) error {
	earlier, err := r.service.runsBefore(ctx, base)
	if err == nil {
		if base.SandboxID == r.sandbox.ID && r.request.Kind == sandbox.KindRestore { // it is rolled back
			r.session.Reset()
		}
		r.restored, err = r.restoreRuns(ctx, earlier)
	}
	if files := r.observers.files; err == nil && files != nil {
		if err = r.session.CopyFiles(files); err == nil {
			_, _, err = r.session.CollectArtifacts(discardFile)
		}
	}
	r.isLost = err != nil
	return err
}

// restore runs the earlier executions of the session, without a record.
func (p *replayInputs) restore(ctx context.Context, r *run) error {
	if len(p.earlier) == 0 {
		return nil
	}
	restored, err := r.restoreRuns(ctx, p.earlier)
	p.restored, p.firstQuery = restored, len(r.handler.queries)
	if restored != nil && (!restored.IsExact || len(restored.Sources) > 0) {
		p.addSource(SourceSession)
	}
	return err
}

// restoreRuns runs executions again in the session of a run, the oldest first, without records of their own. It leaves
// out those that a limit or a caller had ended. The record of the run has the statements that the logs do not answer.
func (r *run) restoreRuns(ctx context.Context, earlier []sandbox.Execution) (*sandbox.Restored, error) {
	s, session := r.service, r.session
	ctx, cancel := context.WithTimeout(ctx, maxRestoreTime)
	defer cancel()
	r.handler.isReplay = true
	defer func() { r.handler.isReplay = false }()
	out := &sandbox.Restored{IsExact: true}
	for n := range earlier {
		e := &earlier[n]
		if e.Status.IsCut() {
			out.Left++
			out.IsExact = false
			continue
		}
		log, err := s.loadInputs(ctx, e)
		isKept := sandbox.FaultOf(err) != sandbox.FaultGone
		if err != nil && isKept {
			return out, err
		}
		again := &replayInputs{service: s, caller: r.caller, original: e, log: log, permitted: map[string]error{}}
		if !isKept { // the code asks the databases again
			again.log = &inputlog.Log{}
			again.sources, out.IsExact = []string{SourceClock, SourceDatabase}, false
		}
		again.player = s.InputKeys.Replay(again.log, !isKept)
		request, err := s.requestOf(e, again.log)
		if err != nil {
			return out, err
		}
		for _, f := range request.Files {
			if _, err := session.Uploads().Put(f.Path, bytes.NewReader(f.Body())); err != nil {
				return out, err
			}
		}
		outcome, err := session.Run(ctx, e.ID, request, supervisor.Callbacks{
			Requests: r.handler, Inputs: again, Recorder: restoreRecorder{},
		})
		if err == nil && ctx.Err() != nil {
			err = sandbox.Errorf(sandbox.FaultLimit, "the earlier executions of the session take longer than %s: run "+
				"them again yourself", maxRestoreTime)
		}
		if err == nil {
			_, _, err = session.CollectArtifacts(discardFile) // the next run must not collect them
		}
		if err != nil {
			return out, err
		}
		again.endRequest()
		out.Executions++
		out.CPUMS += outcome.Usage.CPUMS
		for _, source := range slices.Concat(e.InputLog.Unlogged, again.sources) {
			if !slices.Contains(out.Sources, source) {
				out.Sources = append(out.Sources, source)
			}
		}
		if again.player.Diverged() != nil || !isSame(e, &outcome) {
			out.IsExact = false
		}
	}
	return out, nil
}

// restoreRecorder is the supervisor.Recorder of executions that restore a session. It lets no connection open: the code
// would change the world again.
type restoreRecorder struct{}

// Show returns the output unchanged: nobody sees it.
func (restoreRecorder) Show(_ context.Context, o sandbox.Output) sandbox.Output { return o }

// Connection refuses to open a connection.
func (restoreRecorder) Connection(int64, sandbox.Connection) error {
	return errors.New("code that restores a session opens no connections")
}

// discardFile hashes a file that is not stored, so that later collections leave it out until it changes.
func discardFile(_ string, body io.Reader) (sandbox.Artifact, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, body)
	return sandbox.Artifact{SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
