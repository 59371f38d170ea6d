package sandbox

import "time"

// Artifact is a file that an execution left in its artifacts folder.
type Artifact struct {
	ID          string    `json:"artifact_id"`
	ExecutionID string    `json:"execution_id"`
	SandboxID   string    `json:"sandbox_id"`
	User        string    `json:"-"`
	Folder      string    `json:"-"`    // below the data folder, where the file is linked
	Path        string    `json:"path"` // below the sandbox's artifacts folder; see EscapePath
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	MIME        string    `json:"mime_type"`
	URL         string    `json:"url"`
	Change      Change    `json:"change,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// Change says how an execution changed a file.
type Change string

// The changes. A file that an execution did not change is not an artifact of that execution.
const (
	ChangeNew     Change = "new"
	ChangeChanged Change = "changed"
)
