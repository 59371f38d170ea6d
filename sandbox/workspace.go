package sandbox

import "time"

// EntryKind is the kind of an Entry.
type EntryKind string

// The kinds of an Entry.
const (
	EntryFile   EntryKind = "file"
	EntryFolder EntryKind = "folder"
	EntryLink   EntryKind = "link"
	EntryOther  EntryKind = "other" // a socket, FIFO or device
)

// Entry is a file, folder or link below a sandbox's /session.
type Entry struct {
	Path       string // below /session, "." for /session itself; any bytes that Linux allows in names
	Kind       EntryKind
	Size       int64
	Mode       uint32 // permission bits
	ModifiedAt time.Time
}
