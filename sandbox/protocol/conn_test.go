package protocol

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a hatch, and the child's end of it.
func pair(t *testing.T) (*Conn, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for n, fd := range fds {
		f := os.NewFile(uintptr(fd), "hatch")
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

// What is offered goes as far as there is room, waits for nobody, and comes whole and in
// order, with the descriptors that ride with it.
func TestOffer(t *testing.T) {
	for _, size := range []int{1, 100_000, 5_000_000} {
		for _, full := range []bool{false, true} {
			c, child := pair(t)
			before := 0
			if full {
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
						before += n
					}
				})
				if before == 0 {
					t.Fatal("it is never full")
				}
			}
			text := strings.Repeat("x", size)
			rest := c.WriteAsync(KindRun, text, 0) // and standard input
			over := make(chan error)
			go func() { over <- c.Write(KindInspect, Inspect{What: "next"}) }() // has to wait for the rest
			sent := make(chan error)
			go func() { sent <- rest() }()
			got, n, rights := make([]byte, before+5+len(text)+3), 0, 0
			for n < len(got) {
				oob := make([]byte, 64)
				more, oobn, _, _, err := child.ReadMsgUnix(got[n:], oob)
				if err != nil {
					t.Fatal(err)
				}
				n += more
				if oobn > 0 {
					rights++
				}
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
			whole := string(got)
			if whole[:before] != string(make([]byte, before)) || whole[before+4] != byte(KindRun) || whole[before+5:] != `"`+text+"\"\n" || rights != 1 {
				t.Errorf("%d, full: %v: %d bytes of %d, %d times descriptors", size, full, n, len(got), rights)
			}
			head := make([]byte, 5)
			if _, err := io.ReadFull(child, head); err != nil || head[4] != byte(KindInspect) {
				t.Errorf("after it comes %q, %v", head, err)
			}
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
	}
	c, child := pair(t)
	if err := child.Close(); err != nil {
		t.Fatal(err)
	}
	if c.WriteAsync(KindRun, "x")() == nil || c.WriteAsync(KindRun, func() {})() == nil {
		t.Error("nobody is there, and that is no JSON")
	}
}

// Who awaits a word is told that it came, before it or meanwhile, and reads it whole
// afterwards; that there is none; and that there will be none.
func TestAwait(t *testing.T) {
	c, child := pair(t)
	const long = time.Minute
	done := func() {
		t.Helper()
		if kind, body, err := c.Read(); kind != KindDone || string(body) != "{}" || err != nil {
			t.Errorf("%c %q, %v", kind, body, err)
		}
	}
	frame := []byte{0, 0, 0, 2, byte(KindDone), '{', '}'}
	say := func(b []byte) {
		t.Helper()
		if _, err := child.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if c.WaitReadable(0) || c.WaitReadable(time.Millisecond) {
		t.Error("nothing was said")
	}
	say(append(frame, frame...)) // the second is in the buffer when the first was read
	for range 2 {
		if !c.WaitReadable(long) {
			t.Error("it was said before")
		}
		done()
	}
	came := make(chan bool)
	go func() { came <- c.WaitReadable(long) }()
	say(frame[:1])
	if !<-came {
		t.Error("it was said meanwhile")
	}
	say(frame[1:])
	done()
	go func() { came <- c.WaitReadable(long) }()
	if err := child.Close(); err != nil {
		t.Fatal(err)
	}
	if !<-came {
		t.Error("a child that is gone is waited for")
	}
	if _, _, err := c.Read(); err == nil {
		t.Error("a child that is gone said something")
	}
}
