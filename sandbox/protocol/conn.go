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
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IllegalFrame is the error for a frame that no honest child sends.
type IllegalFrame struct{ Why string }

func (e *IllegalFrame) Error() string { return "illegal frame from the child: " + e.Why }

// Conn is the host's end of a hatch. One goroutine reads; any may write.
type Conn struct {
	sock *net.UnixConn
	in   *bufio.Reader
	mu   sync.Mutex // guards writes

	Trusting bool // takes frames of any kind and size: only for tests of the wall, which show what would come of it
}

// NewConn wraps the host's end of the socket pair; it closes with Close.
func NewConn(sock *net.UnixConn) *Conn {
	return &Conn{sock: sock, in: bufio.NewReaderSize(sock, 16<<10)}
}

// Illegal is the error for what no honest child sends; nil where a test left that wall out.
func (c *Conn) Illegal(why string) error {
	if c.Trusting {
		return nil
	}
	return &IllegalFrame{why}
}

// Close closes the host's end.
func (c *Conn) Close() error { return c.sock.Close() }

// CloseRead fails all writes, now and later: the child is dead. That is not left to its end of the
// socket pair, which a child can put on its way to the host, and so keep open.
func (c *Conn) CloseRead() { _ = c.sock.SetWriteDeadline(time.Unix(1, 0)) }

// Write sends v as the JSON body of one frame, with file descriptors riding
// along where there are any.
func (c *Conn) Write(k Kind, v any, fds ...int) error {
	var o output
	if err := o.json(k, v); err != nil {
		return err
	}
	return c.send(o.b, fds)
}

// WriteAsync begins a Write without waiting, as a child that is stopped does not read: as much
// goes as there is room for. rest sends what is left, and must be called, as other writes
// wait for it.
func (c *Conn) WriteAsync(k Kind, v any, fds ...int) (rest func() error) {
	var o output
	err := o.json(k, v)
	raw, failed := c.sock.SyscallConn()
	if err = errors.Join(err, failed); err != nil {
		return func() error { return err }
	}
	c.mu.Lock()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	sent := 0
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.SendmsgN(int(fd), o.b, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err == nil {
			sent = n
		}
	})
	if sent > 0 {
		fds = nil // they went with the first bytes
	}
	return func() error {
		defer c.mu.Unlock()
		return c.transmit(o.b[sent:], fds)
	}
}

// WriteGo sends an Enter without a body: the child was told at its birth how to lock
// itself down, and may now.
func (c *Conn) WriteGo() error { return c.send([]byte{0, 0, 0, 0, byte(KindEnter)}, nil) }

// flush sends what was put out.
func (c *Conn) flush(o *output) error {
	frames := append(o.before, o.b)
	if *o = (output{b: o.b[:0]}); cap(o.b) > large {
		o.b = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := frames.WriteTo(c.sock)
	return err
}

func (c *Conn) send(frame []byte, fds []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transmit(frame, fds)
}

// transmit sends bytes; the caller holds mu.
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

// WaitReadable waits for the child's next word for no longer than limit, and says whether it
// has come. It takes the calling thread for that, which is then woken by the child
// itself, and not by another thread that was; so it is for one that has nothing else to
// do. Who reads may call it.
func (c *Conn) WaitReadable(limit time.Duration) (came bool) {
	if c.in.Buffered() > 0 {
		return true
	}
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return false
	}
	end := time.Now().Add(limit)
	_ = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for left := limit; left > 0; left = time.Until(end) {
			timeout := unix.NsecToTimespec(int64(left))
			n, err := unix.Ppoll(fds, &timeout, nil)
			if err != unix.EINTR {
				came = n > 0
				return
			}
		}
	})
	return came
}

// Read returns the next frame of the child: its kind and its body, which is
// valid until the next Read is done with it. io.EOF is a closed hatch,
// *IllegalFrame a child that must be ended.
func (c *Conn) Read() (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	return c.body(head, c.in)
}

func (c *Conn) body(head [5]byte, from io.Reader) (Kind, []byte, error) {
	kind, size := Kind(head[4]), int64(binary.BigEndian.Uint32(head[:4]))
	if max := kind.maxBody(); c.Trusting {
		// a test left this wall out
	} else if max < 0 {
		return 0, nil, &IllegalFrame{fmt.Sprintf("kind %d", kind)}
	} else if size > int64(max) {
		return 0, nil, &IllegalFrame{fmt.Sprintf("%d bytes in a %c frame, at most %d", size, kind, max)}
	}
	// Grown as the bytes come: a forged length alone allocates nothing.
	var body bytes.Buffer
	if size <= 4096 {
		body.Grow(int(size))
	}
	if n, err := io.CopyN(&body, from, size); err != nil {
		if err == io.EOF && n < size {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind, body.Bytes(), nil
}

// ReadReady reads the child's Ready, within limit, and the descriptors that came
// with it, which are the caller's even where there is an error. It must come before
// any Read.
func (c *Conn) ReadReady(limit time.Duration) (ready Ready, fds []int, err error) {
	buf, oob, got := make([]byte, 8192), make([]byte, syscall.CmsgSpace(4*4)), 0
	if err := c.sock.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return ready, fds, err
	}
	for {
		n, oobn, _, _, err := c.sock.ReadMsgUnix(buf[got:], oob)
		if err != nil {
			return ready, fds, err
		}
		if n == 0 {
			return ready, fds, io.EOF
		}
		got += n
		if msgs, err := syscall.ParseSocketControlMessage(oob[:oobn]); err == nil {
			for _, m := range msgs {
				more, _ := syscall.ParseUnixRights(&m)
				fds = append(fds, more...)
			}
		}
		if got < 5 {
			continue
		}
		size := int(binary.BigEndian.Uint32(buf))
		if Kind(buf[4]) != KindReady || size > len(buf)-5 {
			return ready, fds, &IllegalFrame{"not a ready"}
		}
		if got < 5+size {
			continue
		}
		// What followed in the same message is the first of the frames.
		c.in.Reset(io.MultiReader(bytes.NewReader(buf[5+size:got]), c.sock))
		if err := c.sock.SetReadDeadline(time.Time{}); err != nil {
			return ready, fds, err
		}
		return ready, fds, json.Unmarshal(buf[5:5+size], &ready)
	}
}
