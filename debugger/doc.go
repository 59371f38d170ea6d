// Package debugger keeps the recording of a debugged run and steps through it,
// forward and back. A recorder inside the wall writes records; a Journal decodes
// them, believing nothing, numbers the steps and keeps them in chunks; a Session is
// what every face drives. Nothing here starts a goroutine or does I/O: bytes are
// handed in by who has them, and a Journal may be read while it is being fed.
//
// A step is one line event of user code, numbered from 1 in the order of arrival. Its
// state is the state on arrival: what the line before it has changed stands before it
// in the recording.
//
// # Records
//
// This is the one description of the format; sandbox/python/guest/recorder_format.py
// and sandbox/python/ext write it. A recording is a sequence of records, each a kind
// (one byte) and its fields. n is an unsigned LEB128 number of at most 64 bits, z the
// same with zigzag, text is n and as many bytes of UTF-8, value is a tag byte and what
// it says. Names, codes and lanes are numbered from 1 in the order in which they are
// defined, and are never forgotten; 0 is none.
//
//	01 head     n version (2), text recorder, text Python's version: the first record
//	02 name     text: the next name
//	03 code     n file, n name (both names), n first line: the next code object
//	04 lane     n kind (1 thread, 2 task), n parent lane, text: the next lane
//	05 push     n frame (0: one more than the highest so far), n code, n lane, n parent frame, n flags (1 restated, 2 suspended),
//	            and where it is restated, n line
//	06 resume   n frame, n parent frame: a generator or coroutine goes on
//	07 suspend  value: it has yielded or awaits
//	08 return   value
//	09 unwind   n type (a name), value message: an exception leaves the frame
//	0a frame    n frame: what follows is of this frame
//	0b line     z line, less the frame's line before: a step
//	0c set      n name, value: a variable of the frame
//	0d global   n name, value: a variable of the run's namespace
//	0e delete   n name: of the frame
//	0f forget   n name: of the namespace
//	10 object   n object, n type (a name), contents: first seen
//	11 mutate   n object, contents: it has changed, under all its names; version 0 is one
//	            more than before; with the version as before, it is only looked at deeper
//	12 free     n object: no variable that is recorded holds it now; another may get its number
//	13 raise    n type (a name), value message: in the frame
//	14 handled  the frame has caught it
//	15 output   n stream (1, 2), n from, n to: bytes written, by offset
//	16 event    n kind (a name), n number: a note or query that belongs here
//	17 lost     n steps, text why: frames, variables and objects are forgotten, and
//	            those that live are stated again; the numbers of steps go on behind it
//	18 unread   n why (a name): the frame's variables are not read
//	80 to ff    a line, by its byte less c0
//
// Push and resume make their frame the current one, suspend, return and unwind its
// parent. A frame that is suspended keeps its variables.
//
// Values: 'N' None, 'T' True, 'F' False, '.' Ellipsis; 'i' z; 'I' n and as many bytes,
// a signed little-endian integer, which may be small; 'f' a double's eight bytes,
// little-endian; 'd' n places (up to 4) and z, a double that is z with so many decimals;
// 'c' two doubles; 's' text; 'S' n characters in all, then text, its beginning; 'u' n and
// bytes, text with lone surrogates as UTF-8 would write them; 'b' n and bytes; 'B' n bytes
// in all, then n and bytes, the beginning; '@' n object. Scalars are lossless, but for 'S'
// and 'B', which say so, and integers too long for 'I', which are objects.
//
// Contents: n version (from 1), n exactness (0 exact, 1 truncated, 2 sampled, 3
// unread), n length and one (0 where it has none), n form (0 opaque, 1 items, 2 pairs,
// 3 attributes, 4 table), n values, and the values; pairs, attributes and tables have
// key and value in turn. Truncated: only the first are here, but every change makes a new
// version. Sampled: a change of what is not here can go unseen. Unread: only the type
// and length are known.
package debugger
