// Package recording reads, stores and replays the recording of a debugged run.
//
// A recorder inside the guest writes a stream of records. A Journal decodes the stream as hostile input, checks each
// record, numbers the steps, and cuts the stream into compressed chunks. A Reader returns the program's state at any
// step. The package starts no goroutine and does no I/O: callers pass bytes in and take chunks out. A Journal may be
// read while it grows.
//
// A step is one line event of user code. Steps are numbered from 1 in the order of arrival. The state of a step is the
// state on arrival at its line: the changes that a line makes come after its line record and before the next one. If a
// debugger changed variables while the program was stopped there, the state has these changes: see Journal.SetEdit.
//
// # Stream format, version 2
//
// This comment is the specification of the format. The guest's recorders in sandbox/python implement the writing side.
//
// A stream is a sequence of records without separators. A record is one byte that names its kind, followed by the
// fields of that kind. Recorders send the stream in pieces of any length: a record may be split between pieces.
//
// The field encodings are:
//
//	n       unsigned integer of at most 64 bits, LEB128
//	z       signed integer of at most 64 bits: zigzag ((v << 1) ^ (v >> 63)), then LEB128
//	text    n, the length in bytes, then that many bytes of UTF-8
//	bytes   n, the length in bytes, then that many bytes
//	double  the 8 bytes of an IEEE 754 double, little-endian
//	value   one tag byte and the fields of that tag; see Values
//
// Strings, code objects, threads and statements are defined once, by a name, code, thread or statement record, and
// numbered from 1 in the order of their definitions, separately for each kind. Later records refer to them by number. A
// definition is never forgotten. Number 0 means none; a reader rejects it where the table below does not allow it.
//
// The record kinds are:
//
//	01 head     n format version, text recorder, text Python version.
//	            The first record, and only the first.
//	02 name     text. Defines the next name.
//	03 code     n file (a name), n function (a name), n first line. Defines the next code object.
//	04 thread   n type (1 thread, 2 asyncio task), n parent thread or 0, text name. Defines the next thread.
//	05 push     n frame, n code, n thread, n calling frame or 0, n flags, and n line if flag 1 is set.
//	            A call begins. Frame 0 means one more than the highest frame number so far. Flag 1 (restated): the frame
//	            began before a gap, and is at this line. Flag 2: the frame is suspended. Without flag 1 the frame's line
//	            is the first line of its code.
//	06 resume   n frame, n calling frame or 0. A suspended generator or coroutine goes on.
//	07 suspend  value yielded or awaited. The current frame is suspended and keeps its variables.
//	08 return   value. The current frame ends.
//	09 unwind   n exception type (a name), value message. The exception leaves the current frame, which ends.
//	0a frame    n frame. Makes this frame the current one.
//	0b line     z line, minus the previous line of the current frame. A step.
//	0c set      n name, value. Sets a variable of the current frame.
//	0d global   n name, value. Sets a variable of the run's namespace.
//	0e delete   n name. Deletes a variable of the current frame.
//	0f forget   n name. Deletes a variable of the namespace.
//	10 object   n object, n type (a name), contents. An object that has no number yet; its version is not 0.
//	11 mutate   n object, contents. The object changed, for all variables that hold it. Version 0 means the previous
//	            version plus 1. The previous version means that the object did not change: the recorder only read its
//	            contents to a greater depth.
//	12 free     n object. No recorded variable holds the object any more; its number may be used again.
//	13 raise    n exception type (a name), value message. An exception is raised in the current frame.
//	14 handled  No fields. The current frame caught its exception.
//	15 output   n stream (1 stdout, 2 stderr), n from, n to. The program wrote these bytes, by offset in the stream.
//	16 event    n kind (a name), n number. Something happened here that is not a step. Kind edit: a command of the
//	            debugger made the changes up to the next edit event with number 0.
//	17 lost     n steps, text reason. This many steps are missing. All frames, variables and objects are forgotten; the
//	            recorder restates those that still exist. Step numbers continue after the gap.
//	18 unread   n reason (a name). The variables of the current frame cannot be read.
//	19 statement text description. Defines the next statement of the program, as JSON: program.Statement.
//	80 to ff    A line record in one byte: the line delta is the byte minus c0.
//
// Push and resume make their frame the current one. Suspend, return and unwind make the calling frame the current one.
// The records from suspend to line, set, delete, raise, handled and unread need a current frame.
//
// # Values
//
// A scalar is recorded in full, except that the tags S and B hold only a prefix. All other values are objects, and so
// are integers that are too long for the tag I.
//
//	'N' None, 'T' True, 'F' False, '.' Ellipsis
//	'i' z        an integer
//	'I' bytes    an integer: two's complement, little-endian, of any length
//	'f' double   a float
//	'd' n z      a float: the second number divided by 10 to the power of the first, which is at most 4; the
//	             second number is not 0, and less than a billion
//	'c' double double   a complex number: real part, imaginary part
//	's' text     a str
//	'S' n text   a str of n characters; the text is its recorded prefix
//	'u' bytes    a str with lone surrogates, encoded like UTF-8
//	'b' bytes    a bytes object
//	'B' n bytes  a bytes object of n bytes; the bytes are its recorded prefix
//	'R' text     in contents of forms 5 and 6: an object, as its repr writes it
//	'@' n        the object with this number
//
// # Contents of objects
//
//	n version     counts the object's changes, from 1
//	n exactness   0 exact, 1 truncated, 2 sampled, 3 unread
//	n length      Python's len() plus 1, or 0 if the object has no length
//	n form        0 opaque, 1 items, 2 pairs, 3 attributes, 5 described, 6 frame
//	n count       number of values that follow
//	count values  items in order; in forms 2 and 3, keys and values alternate
//
// Exact: the contents are complete. Truncated: only the first values are recorded, but each change makes a new version.
// Sampled: a change of a value that is not recorded may go unnoticed. Unread: only type and length are known, or in
// forms 5 and 6 one text, which says why.
//
// Described: the first value is the scalar that the object equals (a numpy.float64) or its text (tag R). Then keys and
// values alternate: the index and the element of an array or an index, or the attributes of an exception.
//
// Frame, a DataFrame or Series of pandas: its text; the number of columns; label, dtype and number of missing values or
// None of each column; then the label and the cells of each row. These are the first columns and rows. A Series has one
// column, with its name.
//
// # Limits
//
// A reader rejects a text or bytes of more than 64 KiB, a record of more than 1 MiB, an object with more than 1024
// values, more than 2^18 names, codes, threads or statements, 2^17 frames or 2^20 objects at a time, 64 MiB of
// variables, objects and messages of exceptions at a time, 8 MiB of statements, a step number of more than 2^50, and a
// stream of more than 192 MiB, with more than 2^25 line records, or with so many different lines, frames, names and
// objects that the indexes of its chunks take more than 256 MiB. A stored chunk has a key frame and records of at most
// 128 MiB, and its index says how many bytes exactly.
//
// # Stored chunks
//
// A chunk is stored on its own: the definitions made since the previous chunk (as records), an index (see
// Chunk.appendIndex), and a key frame with the chunk's other records, delta-encoded in columns (see deltaCoder). Each
// column is a frame of zstd. A key frame restores the complete state at the beginning of its chunk, so any step needs
// one chunk only. Key frames, index and delta encoding are internal: recorders never write them.
package recording
