package records

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// StorePinned returns a function that stores files in the blob store, pinned until unpin
// is called: the sweeper must not remove them before history has them.
func (s *Service) StorePinned() (store func(name string, body io.Reader) (sandbox.Artifact, error), unpin func()) {
	var sums []string
	store = func(name string, body io.Reader) (sandbox.Artifact, error) {
		a, err := s.Blobs.Put(name, body)
		if err == nil {
			sums = append(sums, a.SHA256)
		}
		return a, err
	}
	return store, func() { s.Blobs.Unpin(sums) }
}

// KeepArtifacts records the artifacts of an execution, even if its caller has left. The order is fixed: the
// bytes are on disk before history has the record, and history has the record before the artifact has a name in
// folder on the host. KeepArtifacts fills in the fields of list. It returns the host paths, with "" for a file
// that could not be linked, or nil if history could not record the list.
func (s *Service) KeepArtifacts(
	ctx context.Context, e *sandbox.Execution, folder string, list []sandbox.Artifact, timeout time.Duration,
) (hostPaths []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	const nameBytes = 4096 // disk space of a file's name
	var size int64
	var sums []string
	now := s.Clock().Truncate(time.Microsecond) // as PostgreSQL does
	for n := range list {
		a := &list[n]
		a.ID, a.ExecutionID, a.SandboxID, a.User, a.Folder = s.NewID(), e.ID, e.SandboxID, e.User, folder
		a.CreatedAt = now.Add(time.Duration(n) * time.Microsecond) // unique, so that artifacts have an order
		a.URL = "/artifacts/" + a.ID
		size += a.Size + nameBytes
		sums = append(sums, a.SHA256)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := s.Blobs.Sync(sums); err != nil {
		return nil, err
	}
	if err := s.History.KeepArtifacts(ctx, list); err != nil {
		return nil, err
	}
	hostPaths = make([]string, len(list))
	for n, a := range list {
		var linkErr error
		hostPaths[n], linkErr = s.Blobs.Link(a)
		err = errors.Join(err, linkErr)
	}
	s.countStored(size)
	return hostPaths, err
}

// Artifacts returns a page of at most limit artifacts of a live or ended sandbox, with the newest version of each
// file. next is the cursor of the next page, or "" for the last page.
func (s *Service) Artifacts(ctx context.Context, caller sandbox.Key, sandboxID string, limit int, after string) (
	list []sandbox.Artifact, next string, err error) {
	if _, err := s.Sandbox(ctx, caller, sandboxID); err != nil {
		return nil, "", err
	}
	s.live.TouchSandbox(sandboxID)
	list, next, err = s.History.Artifacts(ctx, sandboxID, after, limit)
	for n := range list {
		list[n].URL = "/artifacts/" + list[n].ID
	}
	return list, next, err
}

// visibleArtifact returns an artifact that the caller may see. The error for an artifact
// of another user does not differ from that for one that does not exist.
func (s *Service) visibleArtifact(ctx context.Context, caller sandbox.Key, id string) (sandbox.Artifact, error) {
	a, err := s.History.Artifact(ctx, id)
	if err == nil && !access.MaySee(caller, a.User) || sandbox.FaultOf(err) == sandbox.FaultNotFound {
		err = sandbox.Errorf(sandbox.FaultNotFound,
			"there is no such artifact, or it is not yours, or it was deleted")
	}
	return a, err
}

// OpenArtifact opens an artifact for reading. The caller closes it.
func (s *Service) OpenArtifact(ctx context.Context, caller sandbox.Key, id string) (*os.File, sandbox.Artifact, error) {
	a, err := s.visibleArtifact(ctx, caller, id)
	if err != nil {
		return nil, a, err
	}
	if err := s.auditExport(ctx, caller, a); err != nil {
		return nil, a, err
	}
	s.live.TouchSandbox(a.SandboxID)
	return s.openBlob(a)
}

func (s *Service) openBlob(a sandbox.Artifact) (*os.File, sandbox.Artifact, error) {
	f, err := s.Blobs.Open(a.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		err = sandbox.Errorf(sandbox.FaultGone, "the bytes of this artifact were deleted")
	}
	return f, a, err
}

// The maximum and the default lifetime of a signed URL.
const (
	MaxSigned     = 7 * 24 * time.Hour
	defaultSigned = time.Hour
)

// SignedURL is the URL of an artifact. It needs no key, and works until it expires.
type SignedURL struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SignArtifact returns a signed URL of an artifact. A lifetime of 0 means an hour.
func (s *Service) SignArtifact(
	ctx context.Context, caller sandbox.Key, id string, lifetime time.Duration,
) (SignedURL, error) {
	if lifetime == 0 {
		lifetime = defaultSigned
	}
	if lifetime < time.Second || lifetime > MaxSigned {
		return SignedURL{}, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "expires_in",
			Detail: fmt.Sprintf("it must be from 1 to %d seconds", int(MaxSigned.Seconds())),
		}
	}
	a, err := s.visibleArtifact(ctx, caller, id)
	if err == nil {
		err = s.auditExport(ctx, caller, a)
	}
	if err != nil {
		return SignedURL{}, err
	}
	end := s.Clock().Add(lifetime).Truncate(time.Second)
	expires := strconv.FormatInt(end.Unix(), 10)
	return SignedURL{
		"/artifacts/" + a.ID + "?expires=" + expires + "&signature=" + s.signature(a.ID, expires),
		end,
	}, nil
}

func (s *Service) signature(id, expires string) string {
	mac := hmac.New(sha256.New, s.SigningKey)
	fmt.Fprintf(mac, "artifact\n%s\n%s", id, expires)
	return hex.EncodeToString(mac.Sum(nil))
}

// OpenSigned opens an artifact for the bearer of a signed URL. The caller closes it.
func (s *Service) OpenSigned(ctx context.Context, id, expires, signature string) (*os.File, sandbox.Artifact, error) {
	if !hmac.Equal([]byte(signature), []byte(s.signature(id, expires))) {
		return nil, sandbox.Artifact{}, sandbox.Errorf(sandbox.FaultForbidden,
			"the signature of this URL is wrong; ask for another URL")
	}
	end, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || !s.Clock().Before(time.Unix(end, 0)) {
		return nil, sandbox.Artifact{}, sandbox.Errorf(sandbox.FaultForbidden, "this URL has expired; ask for another")
	}
	a, err := s.History.Artifact(ctx, id)
	if err != nil {
		return nil, a, err
	}
	return s.openBlob(a)
}

// countStored counts stored bytes. It wakes the sweeper once the bytes since its last run exceed a tenth of one
// user's limit.
func (s *Service) countStored(size int64) {
	if s.storedBytes.Add(size) > s.ArtifactBytes/10 {
		s.wakeSweeper()
	}
}

func (s *Service) wakeSweeper() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}

// sweepInterval is the time between two runs of the sweeper.
const sweepInterval = 10 * time.Minute

// runSweeper removes old artifacts until the service closes. It runs in a goroutine of its own.
func (s *Service) runSweeper() {
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-sweep.C:
		case <-s.sweepNow:
		}
		if err := s.Sweep(context.Background()); err != nil {
			s.Log.WithError(err).Warn("could not remove old artifacts")
		}
	}
}

// Sweep removes artifacts that are too old, each user's oldest artifacts beyond the size limit, and stored bytes and
// names that belong to no artifact. It waits for a sweep that runs: what that one has taken from history is then gone
// from the disk, too.
func (s *Service) Sweep(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.storedBytes.Store(0)
	expired, err := s.History.ExpireArtifacts(ctx, s.deletionTime().Add(-s.ArtifactAge), s.ArtifactBytes)
	if err != nil {
		return err
	}
	for _, a := range expired {
		err = errors.Join(err, s.Blobs.Unlink(a))
	}
	_, sweepErr := s.Blobs.Sweep(func(sums []string) ([]string, error) { return s.History.SumsInUse(ctx, sums) },
		func(folders []string) ([]string, error) { return s.History.PlacesInUse(ctx, folders) })
	return errors.Join(err, sweepErr)
}

// WholeOutput returns an output with its large parts, which are stored as artifacts, in place of the references to
// them.
func (s *Service) WholeOutput(ctx context.Context, caller sandbox.Key, o sandbox.Output) (sandbox.Output, error) {
	var references map[string]sandbox.Artifact
	if json.Unmarshal(o.Data[sandbox.ArtifactMIME], &references) != nil {
		return o, nil
	}
	o.Data = maps.Clone(o.Data)
	delete(o.Data, sandbox.ArtifactMIME)
	for kind, reference := range references {
		f, _, err := s.OpenArtifact(ctx, caller, reference.ID)
		if err != nil {
			return o, err
		}
		body, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return o, err
		}
		o.Data[kind] = encodePart(kind, body)
	}
	return o, nil
}

// binaryTypes are the MIME types whose parts are binary, even if their bytes happen to be text.
var binaryTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// encodePart undoes decodePart.
func encodePart(kind string, body []byte) json.RawMessage {
	text := string(body)
	switch {
	case slices.Contains(binaryTypes, kind) || !utf8.ValidString(text):
		text = base64.StdEncoding.EncodeToString(body)
	case (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(body):
		return body
	}
	encoded, _ := json.Marshal(text) // a string always has a JSON form
	return encoded
}
