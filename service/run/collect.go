package run

import (
	"context"
	"errors"
	"path"
	"time"

	"glasshouse/sandbox"
)

// Limits of the time in which history records the artifacts of a run, and the parts of one output.
const (
	artifactTimeout = 30 * time.Second
	outputTimeout   = 5 * time.Second
)

// collectedArtifacts are the files that a run left in /session/artifacts.
type collectedArtifacts struct {
	list      []sandbox.Artifact
	hostPaths map[string]string // by the path in the sandbox
	missed    int64             // files that could not be stored
	unlinked  int64             // stored files that have no path on the host
}

// collectArtifacts stores the files that the run has left. It logs errors and counts the files as missed; the
// status of the run does not change.
func (r *run) collectArtifacts(ctx context.Context) {
	store, unpin := r.service.Records.StorePinned()
	defer unpin()
	found, missed, err := r.session.CollectArtifacts(store)
	folder, prefix := path.Join("sessions", r.sandbox.ID, "artifacts"), "/session/artifacts/"
	if r.sandbox.Ephemeral {
		folder, prefix = path.Join("outputs", r.opening.ID), "/work/artifacts/"
	}
	hostPaths, recordErr := r.service.Records.KeepArtifacts(ctx, &r.opening, folder, found, artifactTimeout)
	r.artifacts.missed = missed
	if hostPaths == nil {
		r.artifacts.missed += int64(len(found))
	} else {
		r.artifacts.list, r.artifacts.hostPaths = found, map[string]string{}
	}
	for n, hostPath := range hostPaths {
		if hostPath != "" {
			r.artifacts.hostPaths[prefix+found[n].Path] = hostPath
		} else {
			r.artifacts.unlinked++
		}
	}
	if err = errors.Join(err, recordErr); err != nil {
		r.service.logOf(&r.opening).WithError(err).
			Error("could not keep all artifacts of an execution")
	}
}
