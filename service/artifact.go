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
)

// Gallery keeps what is known of artifacts.
type Gallery interface {
	KeepArtifacts(context.Context, []sandbox.Artifact) error
	Artifact(ctx context.Context, id string) (sandbox.Artifact, error)
	Artifacts(ctx context.Context, sandboxID string) ([]sandbox.Artifact, error)
	Attic
}

// Attic says which of them have been kept long enough.
type Attic interface {
	ExpireArtifacts(ctx context.Context, before time.Time, most int64) ([]sandbox.Artifact, error)
	SumsInUse(ctx context.Context, sums []string) ([]string, error)
}

// Vault keeps their bytes, by their sums.
type Vault interface {
	Keep(name string, body io.Reader) (sandbox.Artifact, error)
	Open(sum string) (*os.File, error)
	Names
}

// Names gives them names on the host.
type Names interface {
	Link(sandbox.Artifact) (host string, err error)
	Unlink(sandbox.Artifact) error
	Sweep(age time.Duration, used func(sums []string) ([]string, error)) (removed int, err error)
}

// collect keeps the files that a run has left. What can't be kept is counted and
// logged: the run itself is as it is.
func (s *Service) collect(ctx context.Context, session Session, box sandbox.Sandbox, e *sandbox.Execution) {
	found, missed, err := session.Collect(s.Vault.Keep)
	place, inside := path.Join("sessions", box.ID, "artifacts"), "/session/artifacts/"
	if box.Ephemeral {
		place, inside = path.Join("outputs", e.ID), "/work/artifacts/"
	}
	for n := range found {
		found[n].Place = place
		s.sign(&found[n], e)
		host, failed := s.Vault.Link(found[n])
		if failed == nil {
			e.ArtifactMap[inside+found[n].Path] = host
		}
		err = errors.Join(err, failed)
	}
	if failed := s.keepArtifacts(ctx, e, found, 30*time.Second); failed != nil {
		err, missed = errors.Join(err, failed), missed+int64(len(found))
		e.ArtifactMap = map[string]string{}
	}
	if missed > 0 {
		e.Truncated["artifacts"] += missed
	}
	if err != nil {
		s.Log.WithError(err).WithField("execution_id", e.ID).Error("artifacts could not be kept")
	}
}

// keepArtifacts writes what an execution has left, whoever still waits for it.
func (s *Service) keepArtifacts(ctx context.Context, e *sandbox.Execution, list []sandbox.Artifact, most time.Duration) error {
	if len(list) == 0 {
		return nil
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer done()
	if err := s.History.KeepArtifacts(ctx, list); err != nil {
		return err
	}
	e.Artifacts = append(e.Artifacts, list...)
	var size int64
	for _, a := range list {
		size += a.Size
	}
	s.noteKept(size)
	return nil
}

// sign writes whose an artifact is.
func (s *Service) sign(a *sandbox.Artifact, e *sandbox.Execution) {
	a.ID, a.ExecutionID, a.SandboxID, a.User, a.CreatedAt = s.NewID(), e.ID, e.SandboxID, e.User, s.Clock()
	a.URL = "/artifacts/" + a.ID
}

// Artifacts lists what a sandbox's executions have left, the newest version of each
// file; it answers for sandboxes that have ended, too.
func (s *Service) Artifacts(ctx context.Context, who sandbox.Key, id string) ([]sandbox.Artifact, error) {
	if _, err := s.record(ctx, who, id); err != nil {
		return nil, err
	}
	s.touchLive(id)
	list, err := s.History.Artifacts(ctx, id)
	for n := range list {
		list[n].URL = "/artifacts/" + list[n].ID
	}
	return list, err
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
func (s *Service) artifact(ctx context.Context, who sandbox.Key, id string) (sandbox.Artifact, error) {
	a, err := s.History.Artifact(ctx, id)
	if err == nil && !may(who, a.User) {
		err = sandbox.Errorf(sandbox.FaultNotFound, "there is no such artifact, or it is not yours, or its time to be kept is over")
	}
	return a, err
}

// OpenArtifact opens an artifact for reading; the caller closes it.
func (s *Service) OpenArtifact(ctx context.Context, who sandbox.Key, id string) (*os.File, sandbox.Artifact, error) {
	a, err := s.artifact(ctx, who, id)
	if err != nil {
		return nil, a, err
	}
	s.touchLive(a.SandboxID)
	return s.openArtifact(a)
}

func (s *Service) openArtifact(a sandbox.Artifact) (*os.File, sandbox.Artifact, error) {
	f, err := s.Vault.Open(a.SHA256)
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

// Signed is the URL of an artifact that needs no key until it expires.
type Signed struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SignArtifact makes such a URL, which works for as long as is asked, or an hour.
func (s *Service) SignArtifact(ctx context.Context, who sandbox.Key, id string, last time.Duration) (Signed, error) {
	if last == 0 {
		last = defaultSigned
	}
	if last < time.Second || last > MaxSigned {
		return Signed{}, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_in", Detail: fmt.Sprintf("it must be from 1 to %d seconds", int(MaxSigned.Seconds()))}
	}
	a, err := s.artifact(ctx, who, id)
	if err != nil {
		return Signed{}, err
	}
	end := s.Clock().Add(last).Truncate(time.Second)
	expires := strconv.FormatInt(end.Unix(), 10)
	return Signed{"/artifacts/" + a.ID + "?expires=" + expires + "&signature=" + s.signature(a.ID, expires), end}, nil
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
	tick, save := time.NewTicker(sweepEvery), time.NewTicker(saveEvery)
	defer tick.Stop()
	defer save.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-save.C:
			s.save()
			continue
		case <-tick.C:
		case <-s.sweep:
		}
		if err := s.Sweep(context.Background(), orphanAge); err != nil {
			s.Log.WithError(err).Warn("let old artifacts go")
		}
	}
}

// orphanAge is how long bytes may lie in the vault without a row in history: longer
// than any run takes to write it.
const orphanAge = time.Hour

// Sweep lets artifacts go that are too old or, of each user, too much; and bytes that
// no artifact has, when nobody has kept them for the age.
func (s *Service) Sweep(ctx context.Context, age time.Duration) error {
	s.kept.Store(0)
	gone, err := s.History.ExpireArtifacts(ctx, s.Clock().Add(-s.ArtifactAge), s.ArtifactBytes)
	if err != nil {
		return err
	}
	for _, a := range gone {
		err = errors.Join(err, s.Vault.Unlink(a))
	}
	_, swept := s.Vault.Sweep(age, func(sums []string) ([]string, error) { return s.History.SumsInUse(ctx, sums) })
	return errors.Join(err, swept)
}
