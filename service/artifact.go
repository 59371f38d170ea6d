package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// ArtifactIndex keeps what is known of artifacts.
type ArtifactIndex interface {
	KeepArtifacts(context.Context, []sandbox.Artifact) error
	Artifact(ctx context.Context, id string) (sandbox.Artifact, error)
	Artifacts(ctx context.Context, sandboxID string, after sandbox.Artifact, limit int) ([]sandbox.Artifact, error)
	ArtifactRetention
}

// ArtifactRetention says which of them have been kept long enough.
type ArtifactRetention interface {
	ExpireArtifacts(ctx context.Context, before time.Time, most int64) ([]sandbox.Artifact, error)
	SumsInUse(ctx context.Context, sums []string) ([]string, error)
	PlacesInUse(ctx context.Context, places []string) ([]string, error)
}

// BlobStore keeps their bytes, by their sums.
type BlobStore interface {
	Put(name string, body io.Reader) (sandbox.Artifact, error)
	Sync(sums []string) error
	Unpin(sums []string) // once history has what was kept, or nobody is to have it
	Open(sum string) (*os.File, error)
	ArtifactLinks
}

// ArtifactLinks gives them names on the host.
type ArtifactLinks interface {
	Link(sandbox.Artifact) (host string, err error)
	Unlink(sandbox.Artifact) error
	Sweep(sums, places func([]string) ([]string, error)) (removed int, err error)
}

// collect keeps the files that a run has left. What can't be kept is counted and
// logged: the run itself is as it is.
func (s *Service) collect(ctx context.Context, session Session, box sandbox.Sandbox, e *sandbox.Execution) {
	keep, release := s.holding()
	defer release()
	found, missed, err := session.Collect(keep)
	place, inside := path.Join("sessions", box.ID, "artifacts"), "/session/artifacts/"
	if box.Ephemeral {
		place, inside = path.Join("outputs", e.ID), "/work/artifacts/"
	}
	hosts, failed := s.keepArtifacts(ctx, e, place, found, 30*time.Second)
	for n, host := range hosts {
		if host != "" {
			e.ArtifactMap[inside+found[n].Path] = host
		}
	}
	if hosts == nil {
		missed += int64(len(found))
	}
	if missed > 0 {
		e.Truncated["artifacts"] += missed
	}
	if err = errors.Join(err, failed); err != nil {
		s.Log.WithError(err).WithField("execution_id", e.ID).Error("artifacts could not be kept")
	}
}

// holding is the vault's Keep, and what releases all that it kept.
func (s *Service) holding() (keep supervisor.StoreArtifact, release func()) {
	var sums []string
	keep = func(name string, body io.Reader) (sandbox.Artifact, error) {
		a, err := s.Blobs.Put(name, body)
		if err == nil {
			sums = append(sums, a.SHA256)
		}
		return a, err
	}
	return keep, func() { s.Blobs.Unpin(sums) }
}

// keepArtifacts writes down what an execution has left, whoever still waits for it, and
// then names it on the host, in this order: what has a name is on record, and what is on
// record is on the disk. It fills in
// whose each is, and returns the names, "" for what could not have one; nil where
// nothing is on record.
func (s *Service) keepArtifacts(ctx context.Context, e *sandbox.Execution, place string, list []sandbox.Artifact, most time.Duration) (hosts []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	var size int64
	var sums []string
	now := s.Clock().Truncate(time.Microsecond) // as the database has it
	for n := range list {
		a := &list[n]
		a.ID, a.ExecutionID, a.SandboxID, a.User, a.Folder, a.CreatedAt = s.NewID(), e.ID, e.SandboxID, e.User, place, now.Add(time.Duration(n)*time.Microsecond) // no two at once: the oldest go first
		a.URL = "/artifacts/" + a.ID
		size += a.Size + 4096 // for its name
		sums = append(sums, a.SHA256)
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer done()
	if err := s.Blobs.Sync(sums); err != nil {
		return nil, err
	}
	if err := s.History.KeepArtifacts(ctx, list); err != nil {
		return nil, err
	}
	e.Artifacts = append(e.Artifacts, list...)
	hosts = make([]string, len(list))
	for n, a := range list {
		var failed error
		hosts[n], failed = s.Blobs.Link(a)
		err = errors.Join(err, failed)
	}
	s.noteKept(size)
	return hosts, err
}

// Artifacts lists what a sandbox's executions have left, the newest version of each
// file, limit at a time; next is where to go on after, "" at the end. It answers for
// sandboxes that have ended, too.
func (s *Service) Artifacts(ctx context.Context, caller sandbox.Key, id string, limit int, after string) (list []sandbox.Artifact, next string, err error) {
	if _, err := s.record(ctx, caller, id); err != nil {
		return nil, "", err
	}
	s.touchLive(id)
	var last sandbox.Artifact
	if after != "" {
		var none *sandbox.Error
		last, err = s.History.Artifact(ctx, after)
		if err == nil && last.SandboxID != id || errors.As(err, &none) && none.Fault == sandbox.FaultNotFound {
			err = &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "after", Detail: "it is none of this sandbox's artifacts, or no longer kept: begin anew"}
		}
		if err != nil {
			return nil, "", err
		}
	}
	if list, err = s.History.Artifacts(ctx, id, last, limit+1); len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	for n := range list {
		list[n].URL = "/artifacts/" + list[n].ID
	}
	return list, next, err
}

// touchLive uses a sandbox, if it is still there.
func (s *Service) touchLive(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[id]; l != nil {
		l.used = s.Clock()
	}
}

// artifact is one that who may see.
func (s *Service) artifact(ctx context.Context, caller sandbox.Key, id string) (sandbox.Artifact, error) {
	a, err := s.History.Artifact(ctx, id)
	if err == nil && !may(caller, a.User) {
		err = sandbox.Errorf(sandbox.FaultNotFound, "there is no such artifact, or it is not yours, or its time to be kept is over")
	}
	return a, err
}

// OpenArtifact opens an artifact for reading; the caller closes it.
func (s *Service) OpenArtifact(ctx context.Context, caller sandbox.Key, id string) (*os.File, sandbox.Artifact, error) {
	a, err := s.artifact(ctx, caller, id)
	if err != nil {
		return nil, a, err
	}
	s.touchLive(a.SandboxID)
	return s.openArtifact(a)
}

func (s *Service) openArtifact(a sandbox.Artifact) (*os.File, sandbox.Artifact, error) {
	f, err := s.Blobs.Open(a.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		err = sandbox.Errorf(sandbox.FaultGone, "the bytes of this artifact are no longer kept")
	}
	return f, a, err
}

// How long a signed URL may work, and does where its maker does not say.
const (
	MaxSigned     = 7 * 24 * time.Hour
	defaultSigned = time.Hour
)

// SignedURL is the URL of an artifact that needs no key until it expires.
type SignedURL struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SignArtifact makes such a URL, which works for as long as is asked, or an hour.
func (s *Service) SignArtifact(ctx context.Context, caller sandbox.Key, id string, last time.Duration) (SignedURL, error) {
	if last == 0 {
		last = defaultSigned
	}
	if last < time.Second || last > MaxSigned {
		return SignedURL{}, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_in", Detail: fmt.Sprintf("it must be from 1 to %d seconds", int(MaxSigned.Seconds()))}
	}
	a, err := s.artifact(ctx, caller, id)
	if err != nil {
		return SignedURL{}, err
	}
	end := s.Clock().Add(last).Truncate(time.Second)
	expires := strconv.FormatInt(end.Unix(), 10)
	return SignedURL{"/artifacts/" + a.ID + "?expires=" + expires + "&signature=" + s.signature(a.ID, expires), end}, nil
}

func (s *Service) signature(id, expires string) string {
	mac := hmac.New(sha256.New, s.SigningKey)
	fmt.Fprintf(mac, "artifact\n%s\n%s", id, expires)
	return hex.EncodeToString(mac.Sum(nil))
}

// OpenSigned opens an artifact for the bearer of a signed URL.
func (s *Service) OpenSigned(ctx context.Context, id, expires, signature string) (*os.File, sandbox.Artifact, error) {
	if !hmac.Equal([]byte(signature), []byte(s.signature(id, expires))) {
		return nil, sandbox.Artifact{}, sandbox.Errorf(sandbox.FaultForbidden, "the signature of this URL is wrong; ask for another URL")
	}
	end, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || !s.Clock().Before(time.Unix(end, 0)) {
		return nil, sandbox.Artifact{}, sandbox.Errorf(sandbox.FaultForbidden, "this URL has expired; ask for another")
	}
	a, err := s.History.Artifact(ctx, id)
	if err != nil {
		return nil, a, err
	}
	return s.openArtifact(a)
}

// noteKept has the janitor sweep soon where a good part of what a user may have has
// come since it last did.
func (s *Service) noteKept(size int64) {
	if s.kept.Add(size) > s.ArtifactBytes/10 {
		select {
		case s.sweep <- struct{}{}:
		default:
		}
	}
}

// sweepEvery is how often artifacts are looked at that have been kept long enough.
const sweepEvery = 10 * time.Minute

// sweeper is a goroutine that does, and that saves what keys have used, until the
// service stops.
func (s *Service) sweeper() {
	defer s.work.Done()
	tick, save := time.NewTicker(sweepEvery), time.NewTicker(usageInterval)
	defer tick.Stop()
	defer save.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-save.C:
			s.logSaveUsage()
			continue
		case <-tick.C:
		case <-s.sweep:
		}
		if err := s.Sweep(context.Background()); err != nil {
			s.Log.WithError(err).Warn("let old artifacts go")
		}
	}
}

// Sweep lets artifacts go that are too old or, of each user, too much; and bytes and
// names that no artifact has.
func (s *Service) Sweep(ctx context.Context) error {
	s.kept.Store(0)
	gone, err := s.History.ExpireArtifacts(ctx, s.Clock().Add(-s.ArtifactAge), s.ArtifactBytes)
	if err != nil {
		return err
	}
	for _, a := range gone {
		err = errors.Join(err, s.Blobs.Unlink(a))
	}
	_, swept := s.Blobs.Sweep(func(sums []string) ([]string, error) { return s.History.SumsInUse(ctx, sums) },
		func(places []string) ([]string, error) { return s.History.PlacesInUse(ctx, places) })
	return errors.Join(err, swept)
}
