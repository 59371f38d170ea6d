package protocol

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newPair returns a Conn and the guest's end of it.
func newPair(t *testing.T) (*Conn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for n, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket pair")
		end, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = end.Close() })
		ends[n] = end.(*net.UnixConn)
	}
	return NewConn(ends[0]), ends[1]
}

// fill writes zeros until the socket takes no more, and returns how many it took.
func fill(t *testing.T, c *Conn) (written int) {
	t.Helper()
	raw, err := c.sock.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Write(int(fd), make([]byte, 4096))
			if err != nil {
				return
			}
			written += n
		}
	})
	if written == 0 {
		t.Fatal("the socket takes nothing")
	}
	return written
}

// WriteAsync does not wait for space. Its frame arrives whole and before later frames, with
// its descriptors, once.
func TestWriteAsyncSendsTheWholeFrameInOrder(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 100_000, 5_000_000} {
		for _, isFull := range []bool{false, true} {
			c, guest := newPair(t)
			before := 0
			if isFull {
				before = fill(t, c)
			}
			text := strings.Repeat("x", size)
			finish := c.WriteAsync(KindRun, text, 0) // with standard input
			later := make(chan error)
			go func() { later <- c.Write(KindInspect, Inspect{What: "check"}) }() // waits until finish has returned
			finished := make(chan error)
			go func() { finished <- finish() }()
			got, n, rights := make([]byte, before+headerBytes+len(text)+3), 0, 0
			for n < len(got) {
				control := make([]byte, 64)
				received, controlSize, _, _, err := guest.ReadMsgUnix(got[n:], control)
				if err != nil {
					t.Fatal(err)
				}
				n += received
				if controlSize > 0 {
					rights++
				}
			}
			if err := <-finished; err != nil {
				t.Error(err)
			}
			frame := string(got[before:])
			if string(got[:before]) != string(make([]byte, before)) || frame[4] != byte(KindRun) ||
				frame[headerBytes:] != `"`+text+"\"\n" {
				t.Errorf("%d bytes, socket full %v: got a different frame, want the written one", size, isFull)
			}
			if rights != 1 {
				t.Errorf("%d bytes, socket full %v: got descriptors %d times, want once", size, isFull, rights)
			}
			header := make([]byte, headerBytes)
			if _, err := io.ReadFull(guest, header); err != nil || header[4] != byte(KindInspect) {
				t.Errorf("got header %q, error %v; want kind %c", header, err, KindInspect)
			}
			if err := <-later; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWriteAsyncReturnsErrors(t *testing.T) {
	t.Parallel()
	c, guest := newPair(t)
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteAsync(KindRun, "x")(); err == nil {
		t.Error("closed connection: got no error")
	}
	if err := c.WriteAsync(KindRun, func() {})(); err == nil {
		t.Error("a value that JSON cannot represent: got no error")
	}
}

func TestWaitReadable(t *testing.T) {
	t.Parallel()
	c, guest := newPair(t)
	const long = time.Minute
	readDone := func() {
		t.Helper()
		if kind, body, err := c.Read(); kind != KindDone || string(body) != "{}" || err != nil {
			t.Errorf("got %c %q, error %v; want %c {}", kind, body, err, KindDone)
		}
	}
	frame := []byte{0, 0, 0, 2, byte(KindDone), '{', '}'}
	send := func(b []byte) {
		t.Helper()
		if _, err := guest.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if c.WaitReadable(0) || c.WaitReadable(time.Millisecond) {
		t.Error("nothing was sent: got readable")
	}
	send(append(frame, frame...)) // the second one is in the reader's buffer after the first Read
	for range 2 {
		if !c.WaitReadable(long) {
			t.Error("a frame was sent before: got not readable")
		}
		readDone()
	}
	readable := make(chan bool)
	go func() { readable <- c.WaitReadable(long) }()
	send(frame[:1])
	if !<-readable {
		t.Error("a byte was sent meanwhile: got not readable")
	}
	send(frame[1:])
	readDone()
	go func() { readable <- c.WaitReadable(long) }()
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	if !<-readable {
		t.Error("the guest is gone: got not readable")
	}
	if _, _, err := c.Read(); err == nil {
		t.Error("the guest is gone: Read returned no error")
	}
}

// A Conn that has given back its buffer reads every byte that the guest has sent, and no byte of another guest.
func TestReleaseBufferKeepsUnreadFrames(t *testing.T) {
	t.Parallel()
	c, guest := newPair(t)
	other, otherGuest := newPair(t)
	send := func(to *net.UnixConn, frames string) {
		t.Helper()
		if _, err := io.WriteString(to, frames); err != nil {
			t.Fatal(err)
		}
	}
	frame := func(kind Kind, body string) string {
		return string(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), byte(kind))) + body
	}
	wantFrame := func(from *Conn, want string) {
		t.Helper()
		kind, body, err := from.Read()
		from.ReleaseBuffer()
		if kind != KindValue || string(body) != want || err != nil {
			t.Fatalf("Read: got %c %q and %v, want the value %s", kind, body, err, want)
		}
	}
	first, second, third := frame(KindValue, "1"), frame(KindValue, "2"), frame(KindValue, "3")
	send(guest, frame(KindReady, `{"error":""}`)+first[:3])
	if _, err := c.ReadReady(time.Minute); err != nil {
		t.Fatal(err)
	}
	c.ReleaseBuffer()
	send(guest, first[3:]+second+third[:2])
	wantFrame(c, "1") // the buffer has the rest, so it is not released
	wantFrame(c, "2")
	send(guest, third[2:])
	wantFrame(c, "3")
	send(otherGuest, second)
	wantFrame(other, "2")
	send(guest, first)
	wantFrame(c, "1")
}
