package recording

import (
	"fmt"
	"strings"
)

// Kind is the kind of a record. The package comment specifies the fields of each kind.
type Kind byte

// The kinds of records.
const (
	KindHead Kind = iota + 1
	KindName
	KindCode
	KindThread
	KindPush
	KindResume
	KindSuspend
	KindReturn
	KindUnwind
	KindFrame
	KindLine
	KindSet
	KindGlobal
	KindDelete
	KindForget
	KindObject
	KindMutate
	KindFree
	KindRaise
	KindHandled
	KindOutput
	KindEvent
	KindLost
	KindUnread
	KindStatement
)

// kindNames are the names of the kinds in transcripts, in the order of the constants. Transcripts call a thread record
// "lane", also those that the guest's tests write.
var kindNames = strings.Fields("head name code lane push resume suspend return unwind frame line set global delete " +
	"forget object mutate free raise handled output event lost unread statement")

func (k Kind) String() string {
	if k > 0 && int(k) <= len(kindNames) {
		return kindNames[k-1]
	}
	return fmt.Sprintf("kind %#x", byte(k))
}

// Flags of a push record.
const (
	FlagRestated  = 1 // the frame began before a gap
	FlagSuspended = 2
)

// threadTypeTask is the type of a thread record that defines an asyncio task.
const threadTypeTask = 2

// editEvent is the kind of the events around the changes that a command of the debugger made.
const editEvent = "edit"

// FormatVersion is the version of the stream format that this package reads.
const FormatVersion = 2

// A line record of one byte has a delta of this byte minus shortLineZero.
const (
	shortLineFirst = 0x80
	shortLineZero  = 0xc0
)

// Limits of one record. The records of our recorders are much smaller.
const (
	maxTextBytes    = 64 << 10
	maxObjectValues = 1024
	maxRecordBytes  = 1 << 20
)

// Record is one decoded record. The kind determines which fields are set.
type Record struct {
	Kind   Kind
	Frame  uint64
	Parent uint64 // the calling frame; of a thread record, the parent thread
	Code   uint64
	Thread uint64
	Name   uint64 // of code, the function; of raise and unwind, the exception type; of event, its kind
	File   uint64 // a name
	Number uint64 // format version, first line, thread type, push flags, lost steps, stream, or event number
	From   uint64 // of output, the first offset; of a restated push, the line
	To     uint64 // of output, the offset after the last byte
	Delta  int64  // of line
	Text   string
	Python string // of head, the Python version
	Value  Value
	Object Object

	// ReadDeeper is set by State.apply on a mutate record that did not change its object: the recorder only read the
	// object to a greater depth.
	ReadDeeper bool
}
