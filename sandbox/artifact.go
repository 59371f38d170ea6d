package sandbox

import "time"

// Artifact is one file an execution left, known by its hash.
type Artifact struct {
	ID          string    `json:"artifact_id"`
	ExecutionID string    `json:"execution_id"`
	SandboxID   string    `json:"sandbox_id"`
	User        string    `json:"-"`
	Folder      string    `json:"-"`    // the folder below the data folder that it is linked in
	Path        string    `json:"path"` // below the sandbox's artifacts folder; a byte that is not UTF-8 is %XX
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	MIME        string    `json:"mime_type"`
	URL         string    `json:"url"`
	Change      Change    `json:"change,omitempty"` // by the execution
	CreatedAt   time.Time `json:"created_at"`
}

// Change says what an execution did to a file.
type Change string

// The changes. A file that an execution left as it was is none of its artifacts.
const (
	ChangeNew     Change = "new"
	ChangeChanged Change = "changed"
)
