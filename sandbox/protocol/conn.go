package protocol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
)

// headerBytes is the size of a frame's length and kind.
const headerBytes = 5

// largeFrameTimeout is how long a body of more than 1 MiB may take to arrive. Our guest code takes milliseconds of CPU
// time.
const largeFrameTimeout = 30 * time.Second

// IllegalFrame is the error for a frame that breaks the protocol. Our guest code never sends one.
type IllegalFrame struct{ Why string }

func (e *IllegalFrame) Error() string {
	return "the process broke the protocol between sandbox and service: " + e.Why +
		"; only code that writes to the sandbox's own connection does that"
}

// Conn is the supervisor's end of the connection. One goroutine reads; any may write.
type Conn struct {
	sock   *net.UnixConn
	source io.Reader     // sock, or bytes that ReadReady has read and then sock
	reader *bufio.Reader // of source; nil: it has no buffer until the next use of buffered
	mu     sync.Mutex    // held while a frame is written
	early  int64         // unread bytes that were sent before MarkRun

	// ReserveLarge is called before the body of a frame is read that has more than 1 MiB, and release when the body is
	// there. The body must then arrive within largeFrameTimeout. Nil: such bodies are not limited.
	ReserveLarge func() (release func(), err error)

	// Sent is called with the frames of each answer before they are sent. They are valid until it returns. Nil: it is
	// not called. Only the goroutine that answers may set it.
	Sent func(frames net.Buffers)

	// Trusting accepts frames of any kind and size. Only tests set it, to show that an
	// attack succeeds without the checks.
	Trusting bool
}

// NewConn returns a Conn on the supervisor's end of the socket pair, which Close closes.
func NewConn(sock *net.UnixConn) *Conn {
	return &Conn{sock: sock, source: sock}
}

// readers has the buffers that no Conn uses.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// buffered returns the reader, with a buffer.
func (c *Conn) buffered() *bufio.Reader {
	if c.reader == nil {
		c.reader, _ = readers.Get().(*bufio.Reader)
		c.reader.Reset(c.source)
	}
	return c.reader
}

// ReleaseBuffer gives back the buffer, of 16 KiB, if it is empty. Only the reading goroutine may call it, or another
// while none reads.
func (c *Conn) ReleaseBuffer() {
	if c.reader != nil && c.reader.Buffered() == 0 {
		c.reader.Reset(nil)
		readers.Put(c.reader)
		c.reader = nil
	}
}

// Illegal returns the error for a protocol violation, or nil if a test disabled the check.
func (c *Conn) Illegal(why string) error {
	if c.Trusting {
		return nil
	}
	return &IllegalFrame{why}
}

// Decode parses the JSON of a guest's frame into v. It returns *IllegalFrame if the JSON is not strict or does not
// fit v.
func (c *Conn) Decode(kind Kind, body []byte, v any) error {
	if err := c.Check(kind, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &IllegalFrame{fmt.Sprintf("a %c frame cannot be parsed: %s", kind, err)}
	}
	return nil
}

// Check returns *IllegalFrame if the body of a guest's frame is not strict JSON. Parts of a frame go into answers and
// into history as they are, where every JSON reader must be able to read them.
func (c *Conn) Check(kind Kind, body []byte) error {
	if err := sandbox.CheckJSON(body); err != nil {
		return c.Illegal(fmt.Sprintf("a %c frame has JSON that not every reader accepts: %s", kind, err))
	}
	return nil
}

// Close closes the supervisor's end.
func (c *Conn) Close() error { return c.sock.Close() }

// CloseRead makes all writes fail. Call it when the guest is dead. The kernel alone does not
// make them fail: a guest can send its end of the socket pair to the supervisor, and that
// end then stays open.
func (c *Conn) CloseRead() { _ = c.sock.SetWriteDeadline(time.Unix(1, 0)) }

// MarkRun notes which bytes the guest has sent so far. Only the end of an earlier run can be among them, so Read then
// returns *IllegalFrame for a Done frame that begins there. Other frames may come from threads that an earlier run left
// behind. Call MarkRun before a Run frame is written, while the guest is frozen or waits for its first run.
func (c *Conn) MarkRun() {
	c.early = int64(c.buffered().Buffered())
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return // the connection is closed, as the next Read says
	}
	_ = raw.Control(func(fd uintptr) {
		if waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			c.early += int64(waiting)
		}
	})
}

// Write sends v as the JSON body of one frame, with file descriptors.
func (c *Conn) Write(k Kind, v any, fds ...int) error {
	var f frames
	if err := f.json(k, v); err != nil {
		return err
	}
	return c.send(f.tail, fds)
}

// WriteAsync begins a Write to a guest that may be stopped. It sends as many bytes as fit
// into the socket, without waiting. finish sends the rest. The caller must call finish,
// because other writes wait for it.
func (c *Conn) WriteAsync(k Kind, v any, fds ...int) (finish func() error) {
	var f frames
	err := f.json(k, v)
	raw, rawErr := c.sock.SyscallConn()
	if err = errors.Join(err, rawErr); err != nil {
		return func() error { return err }
	}
	c.mu.Lock()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	sent := 0
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.SendmsgN(int(fd), f.tail, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err == nil {
			sent = n
		}
	})
	if sent > 0 {
		fds = nil // they were sent with the first bytes
	}
	return func() error {
		defer c.mu.Unlock()
		return c.transmit(f.tail[sent:], fds)
	}
}

// WriteGo sends an Enter frame without a body, to a guest that got its Enter from its zygote.
func (c *Conn) WriteGo() error { return c.send([]byte{0, 0, 0, 0, byte(KindEnter)}, nil) }

// SetReadDeadline makes Read fail after a time; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.sock.SetReadDeadline(t) }

// WriteCopies sends a Copies frame with this body. It does not wait: it fails if the guest has not read earlier frames.
func (c *Conn) WriteCopies(body []byte) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	frame = append(append(frame, byte(KindCopies)), body...)
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := 0
	controlErr := raw.Control(func(fd uintptr) {
		sent, err = unix.SendmsgN(int(fd), frame, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	if err == nil && sent < len(frame) {
		err = io.ErrShortWrite
	}
	return errors.Join(err, controlErr)
}

// HasUnread reports whether the guest has sent bytes that were not read. Only the reading goroutine may call it.
func (c *Conn) HasUnread() bool {
	c.MarkRun()
	return c.early > 0
}

// flush sends the frames in f and empties it.
func (c *Conn) flush(f *frames) error {
	buffers := append(f.before, f.tail)
	if *f = (frames{tail: f.tail[:0]}); cap(f.tail) > inPlaceBytes {
		f.tail = nil
	}
	if c.Sent != nil {
		c.Sent(buffers)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := buffers.WriteTo(c.sock)
	return err
}

// WriteAnswer sends an Answer that has no rows.
func (c *Conn) WriteAnswer(a Answer) error {
	var f frames
	if err := f.json(KindAnswer, a); err != nil {
		return err
	}
	return c.flush(&f)
}

// WriteFrames sends whole frames of an answer to the Request with this ID: those that JoinAnswer returned.
func (c *Conn) WriteFrames(frames []byte, id uint32) error {
	answer, err := setID(frames, id)
	if err != nil {
		return err
	}
	return c.send(answer, nil)
}

// JoinAnswer returns a copy of whole frames of an answer, as they would be for a Request with the ID 0.
func JoinAnswer(frames net.Buffers) []byte {
	joined := bytes.Join(frames, nil)
	// No ID is shorter than 0, so the frames fit into the memory that they have.
	out, err := appendWithID(joined[:0], joined, 0)
	if err != nil {
		panic(err) // Conn has encoded the frames
	}
	return out
}

// AnswerColumns returns the columns of an answer; nil: it has no rows.
func AnswerColumns(frames []byte) ([]sandbox.Column, error) {
	if len(frames) < headerBytes || Kind(frames[4]) != KindColumns {
		return nil, nil
	}
	size := int(binary.BigEndian.Uint32(frames))
	if size > len(frames)-headerBytes {
		return nil, io.ErrUnexpectedEOF
	}
	var columns Columns
	err := json.Unmarshal(frames[headerBytes:headerBytes+size], &columns)
	return columns.Columns, err
}

// setID returns frames of an answer with the ID of another Request. It may change frames.
func setID(frames []byte, id uint32) ([]byte, error) {
	return appendWithID(make([]byte, 0, len(frames)+64), frames, id)
}

// appendWithID appends frames with an ID to out. out may be the beginning of the memory of frames if the ID is not
// longer than theirs.
func appendWithID(out, frames []byte, id uint32) ([]byte, error) {
	for rest := frames; len(rest) > 0; {
		if len(rest) < headerBytes {
			return nil, io.ErrUnexpectedEOF
		}
		size, kind := int(binary.BigEndian.Uint32(rest)), Kind(rest[4])
		if size > len(rest)-headerBytes {
			return nil, io.ErrUnexpectedEOF
		}
		body := rest[headerBytes : headerBytes+size]
		rest = rest[headerBytes+size:]
		switch kind {
		case KindRows:
			if len(body) < 4 {
				return nil, io.ErrUnexpectedEOF
			}
			binary.BigEndian.PutUint32(body, id)
			out = appendFrame(out, kind, body, nil)
		case KindColumns, KindAnswer: // the ID is the first member
			after, found := bytes.CutPrefix(body, []byte(`{"id":`))
			end := bytes.IndexAny(after, ",}")
			if !found || end < 0 {
				return nil, fmt.Errorf("a %c frame has no ID", kind)
			}
			out = appendFrame(out, kind, strconv.AppendUint([]byte(`{"id":`), uint64(id), 10), after[end:])
		default:
			return nil, fmt.Errorf("a %c frame does not belong to an answer", kind)
		}
	}
	return out, nil
}

// appendFrame appends a frame whose body is start and then rest.
func appendFrame(b []byte, k Kind, start, rest []byte) []byte {
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(start)+len(rest))), byte(k))
	return append(append(b, start...), rest...)
}

func (c *Conn) send(frame []byte, fds []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transmit(frame, fds)
}

// transmit writes bytes with file descriptors. The caller holds mu.
func (c *Conn) transmit(bytes []byte, fds []int) error {
	if len(fds) > 0 {
		n, _, err := c.sock.WriteMsgUnix(bytes, unix.UnixRights(fds...), nil)
		if err != nil {
			return err
		}
		bytes = bytes[n:]
	}
	if len(bytes) == 0 {
		return nil
	}
	_, err := c.sock.Write(bytes)
	return err
}

// WaitReadable waits, at most for limit, until the guest has sent something, and reports
// whether it has. It blocks the calling thread, because a guest wakes a blocked thread
// faster than a goroutine in Go's poller. Only the reading goroutine may call it.
func (c *Conn) WaitReadable(limit time.Duration) (isReadable bool) {
	if c.buffered().Buffered() > 0 {
		return true
	}
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return false
	}
	deadline := time.Now().Add(limit)
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for left := limit; left > 0; left = time.Until(deadline) {
			timeout := unix.NsecToTimespec(int64(left))
			n, err := unix.Ppoll(fds, &timeout, nil)
			if err != unix.EINTR {
				isReadable = n > 0
				return
			}
		}
	})
	return isReadable
}

// Read returns the kind and the body of the guest's next frame. It returns io.EOF if the
// connection is closed. It returns *IllegalFrame for a protocol violation; the caller must
// then end the guest.
func (c *Conn) Read() (Kind, []byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(c.buffered(), header[:]); err != nil {
		return 0, nil, err
	}
	isEarly := c.early > 0
	kind, body, err := c.readBody(header)
	c.early -= headerBytes + int64(len(body))
	if err == nil && isEarly && kind == KindDone {
		err = c.Illegal("the end of a run came before the run began")
	}
	return kind, body, err
}

func (c *Conn) readBody(header [headerBytes]byte) (Kind, []byte, error) {
	kind, size := Kind(header[4]), int64(binary.BigEndian.Uint32(header[:4]))
	if max := int64(kind.maxBody()); !c.Trusting {
		if max < 0 {
			return 0, nil, &IllegalFrame{fmt.Sprintf("a guest must not send kind %d", kind)}
		}
		if size > max {
			return 0, nil, &IllegalFrame{fmt.Sprintf("%d bytes in a %c frame, at most %d are allowed", size, kind, max)}
		}
	}
	if size > maxSmallBody && c.ReserveLarge != nil {
		release, err := c.ReserveLarge()
		if err != nil {
			return 0, nil, err
		}
		defer release()
		if err := c.sock.SetReadDeadline(time.Now().Add(largeFrameTimeout)); err != nil {
			return 0, nil, err
		}
		defer func() { _ = c.sock.SetReadDeadline(time.Time{}) }()
	}
	body, err := c.readBytes(size)
	switch {
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = c.Illegal(fmt.Sprintf("%d bytes in a %c frame did not arrive within %s", size, kind, largeFrameTimeout))
	}
	return kind, body, err
}

// readBytes reads a number of bytes. The buffer grows as bytes arrive, so a forged length without a body allocates
// nothing.
func (c *Conn) readBytes(size int64) ([]byte, error) {
	const smallBody = 4096
	body := make([]byte, 0, min(size, smallBody))
	for int64(len(body)) < size {
		if len(body) == cap(body) {
			body = append(make([]byte, 0, min(2*int64(len(body)), size)), body...)
		}
		n, err := io.ReadFull(c.buffered(), body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			if err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			return body, err
		}
	}
	return body, nil
}

// ReadReady reads the guest's Ready within limit. Call it before any Read.
func (c *Conn) ReadReady(limit time.Duration) (ready Ready, err error) {
	buf, size := make([]byte, 8192), 0
	if err := c.sock.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return ready, err
	}
	for {
		n, err := c.sock.Read(buf[size:])
		if err != nil {
			return ready, err
		}
		size += n
		if size < headerBytes {
			continue
		}
		bodySize := int(binary.BigEndian.Uint32(buf))
		if Kind(buf[4]) != KindReady || bodySize > len(buf)-headerBytes {
			return ready, &IllegalFrame{"the first frame is not a Ready"}
		}
		end := headerBytes + bodySize
		if size < end {
			continue
		}
		if size > end { // the guest has sent the beginning of its next frame already
			c.source = io.MultiReader(bytes.NewReader(bytes.Clone(buf[end:size])), c.sock)
		}
		if err := c.sock.SetReadDeadline(time.Time{}); err != nil {
			return ready, err
		}
		return ready, json.Unmarshal(buf[headerBytes:end], &ready)
	}
}
