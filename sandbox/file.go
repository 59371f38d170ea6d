package sandbox

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// File is an upload, which code reads at /data/Path.
type File struct {
	Path       string    `json:"path"`
	Size       int64     `json:"size"`
	SHA256     string    `json:"sha256"`
	MIME       string    `json:"mime_type"`
	UploadedAt time.Time `json:"uploaded_at"`
}

// The limits of a path.
const (
	maxNameBytes = 255 // as on Linux
	maxPathBytes = 1024
	MaxDepth     = 16 // names in a path
)

// CheckPath returns the problem of a path that a caller sent, as a text for that caller, or
// "" if the path is valid. A name is valid if Linux and JSON allow it and it cannot name a
// file outside the folder.
func CheckPath(p string) string {
	names := strings.Split(p, "/")
	switch {
	case p == "":
		return "it is empty: a file needs a name"
	case len(p) > maxPathBytes:
		return "it is longer than 1024 bytes"
	case len(names) > MaxDepth:
		return "it is deeper than 16 folders"
	case !utf8.ValidString(p):
		return "it must be UTF-8"
	case strings.ContainsRune(p, 0):
		return "it has a null character"
	}
	for _, name := range names {
		switch {
		case name == "":
			return "it must not begin or end with /, nor have // in it"
		case name == "." || name == "..":
			return "no part of it may be . or .."
		case len(name) > maxNameBytes:
			return "a name in it is longer than 255 bytes"
		}
	}
	return ""
}

// EscapePath returns the path that clients see of a file that code has written. Linux allows any bytes in a name, JSON
// does not: a byte that is not UTF-8 becomes %XX, from %80 to %FF. So that different files keep different paths, a %
// that begins %25 or one of these escapes becomes %25. No other path changes.
func EscapePath(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRuneInString(p[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "%%%02X", p[i])
		case r == '%' && beginsEscape(p[i:]):
			b.WriteString("%25")
		default:
			b.WriteString(p[i : i+size])
		}
		i += size
	}
	return b.String()
}

// beginsEscape reports whether p begins with an escape of EscapePath.
func beginsEscape(p string) bool {
	const digits = "0123456789ABCDEF"
	return len(p) >= 3 && (p[1:3] == "25" ||
		strings.IndexByte(digits, p[1]) >= 8 && strings.IndexByte(digits, p[2]) >= 0)
}

// mimeTypes has the types of files that are common in data analysis, by extension.
var mimeTypes = map[string]string{
	".csv":     "text/csv; charset=utf-8",
	".tsv":     "text/tab-separated-values; charset=utf-8",
	".txt":     "text/plain; charset=utf-8",
	".log":     "text/plain; charset=utf-8",
	".md":      "text/markdown; charset=utf-8",
	".py":      "text/x-python; charset=utf-8",
	".html":    "text/html; charset=utf-8",
	".htm":     "text/html; charset=utf-8",
	".css":     "text/css; charset=utf-8",
	".xml":     "application/xml",
	".json":    "application/json",
	".jsonl":   "application/jsonl",
	".ndjson":  "application/x-ndjson",
	".geojson": "application/geo+json",
	".yaml":    "application/yaml",
	".yml":     "application/yaml",
	".toml":    "application/toml",
	".sql":     "application/sql",
	".ipynb":   "application/x-ipynb+json",
	".js":      "text/javascript; charset=utf-8",
	".tex":     "application/x-tex",
	".png":     "image/png",
	".jpg":     "image/jpeg",
	".jpeg":    "image/jpeg",
	".gif":     "image/gif",
	".webp":    "image/webp",
	".svg":     "image/svg+xml",
	".bmp":     "image/bmp",
	".tif":     "image/tiff",
	".tiff":    "image/tiff",
	".ico":     "image/vnd.microsoft.icon",
	".pdf":     "application/pdf",
	".mp3":     "audio/mpeg",
	".wav":     "audio/wav",
	".mp4":     "video/mp4",
	".webm":    "video/webm",
	".zip":     "application/zip",
	".gz":      "application/gzip",
	".bz2":     "application/x-bzip2",
	".xz":      "application/x-xz",
	".zst":     "application/zstd",
	".tar":     "application/x-tar",
	".parquet": "application/vnd.apache.parquet",
	".arrow":   "application/vnd.apache.arrow.file",
	".feather": "application/vnd.apache.arrow.file",
	".xls":     "application/vnd.ms-excel",
	".xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".ods":     "application/vnd.oasis.opendocument.spreadsheet",
	".docx":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".pptx":    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".sqlite":  "application/vnd.sqlite3",
	".db":      "application/vnd.sqlite3",
}

// Extension returns the shortest extension of a MIME type, with its dot, or .bin for an unknown type.
func Extension(mimeType string) string {
	best := ".bin"
	for ext, t := range mimeTypes {
		isShorter := len(ext) < len(best) || len(ext) == len(best) && ext < best
		if kind, _, _ := strings.Cut(t, ";"); kind == mimeType && (best == ".bin" || isShorter) {
			best = ext
		}
	}
	return best
}

// MIMEType returns the type of a file by the extension of its name. For an unknown extension
// it returns a text or a binary type, depending on the first bytes. The result does not
// depend on the machine.
func MIMEType(name string, head []byte) string {
	if t, ok := mimeTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return "application/octet-stream"
	}
	for cut := 0; cut < utf8.UTFMax && cut < len(head); cut++ { // the last character may be incomplete
		if utf8.Valid(head[:len(head)-cut]) {
			return "text/plain; charset=utf-8"
		}
	}
	return "application/octet-stream"
}

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
