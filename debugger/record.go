package debugger

// Kind is a record's kind; the package comment says what each has.
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
)

// The flags of a push.
const (
	FlagRestated  = 1 // after records were lost, not begun here
	FlagSuspended = 2
)

// Deeper is the Number of a mutate that has been applied and was no change.
const Deeper = 1

const (
	formatVersion = 2
	shortLine     = 0x80 // the first byte that is a line by itself
	shortZero     = 0xc0 // of them, the line that is the frame's line before
)

// What a record may have at the most. The recorders stay far below.
const (
	maxText   = 64 << 10
	maxValues = 1024 // of one object
	maxRecord = 1 << 20
)

// Record is one record; which fields are set is its kind's affair.
type Record struct {
	Kind   Kind
	Frame  uint64
	Parent uint64 // a frame, or of a lane a lane
	Code   uint64
	Lane   uint64
	Name   uint64 // of a code its name; of raise and unwind the type; of an event its kind
	File   uint64 // a name
	Number uint64 // version, first line, a lane's kind, flags, the lost steps, a stream, an event's number
	From   uint64 // of output; of a push that is restated, the line
	To     uint64
	Delta  int64 // of a line
	Text   string
	Extra  string // of head, Python's version
	Value  Value
	Object Object
}
