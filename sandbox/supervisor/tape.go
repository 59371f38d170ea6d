package supervisor

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tape keeps the head and the tail of what is written to one pipe, and counts
// what it had to drop between them.
type tape struct {
	pipe  *os.File
	max   int
	tell  func([]byte)  // gets all that is written, as it is read; nil: nobody listens
	timer *time.Timer   // that starts record; nil before begin
	ended chan struct{} // record is over

	mu    sync.Mutex // held while the pipe is read; guards what follows
	head  []byte
	tail  []byte // ring of max/2 bytes
	at    int
	total int64
}

// buffer takes what a pipe has of usual size.
type buffer [64 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// untilRecording is how long output may wait in its pipe: a short run needs no goroutine
// to read it, and a long one of an honest child is held up no longer than this, and
// aloneTime before it, when it has filled the pipe.
const untilRecording = 10 * time.Millisecond

// newTape is to keep what the pipe has.
func newTape(pipe *os.File, max int, tell func([]byte)) *tape {
	return &tape{pipe: pipe, max: max, tell: tell, ended: make(chan struct{})}
}

// begin begins to keep it, soon. It is called once, before stop, or not at all.
func (t *tape) begin() { t.timer = time.AfterFunc(untilRecording, t.record) }

// record reads the pipe until it is closed or stop ends it.
func (t *tape) record() {
	defer close(t.ended)
	conn, err := t.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		for {
			if n, err := t.read(int(fd), buf[:]); n <= 0 {
				return err != unix.EAGAIN
			}
		}
	})
}

// read takes one read's worth out of the pipe, if there is any.
func (t *tape) read(fd int, buf []byte) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if n, err = unix.Read(fd, buf); err != unix.EINTR {
			break
		}
	}
	if n > 0 {
		t.append(buf[:n])
	}
	return n, err
}

// catchUp takes what the pipe holds now: what was written before something else
// that the child did is told before it. It is called by one goroutine.
func (t *tape) catchUp() {
	if conn, err := t.pipe.SyscallConn(); err == nil {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		_ = conn.Control(func(fd uintptr) { _, _ = t.read(int(fd), buf[:]) })
	}
}

// stop takes what is still in the pipe, whose writer is stopped or gone, and ends
// record. One that goes on all the same holds nobody up: what the pipe can hold is taken
// and no more. The tape may be read afterwards.
func (t *tape) stop() {
	if t.timer != nil && !t.timer.Stop() { // record has begun
		_ = t.pipe.SetReadDeadline(time.Unix(1, 0))
		<-t.ended
		_ = t.pipe.SetReadDeadline(time.Time{})
	}
	conn, err := t.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		for left := -1; left != 0; {
			n, _ := t.read(int(fd), buf[:])
			if n <= 0 {
				return
			}
			if left < 0 {
				left, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
			}
			left = max(left-n, 0)
		}
	})
}

func (t *tape) append(p []byte) {
	t.total += int64(len(p))
	if t.tell != nil {
		t.tell(p)
	}
	if room := t.max - t.max/2 - len(t.head); room > 0 {
		n := min(room, len(p))
		t.head = append(t.head, p[:n]...)
		p = p[n:]
	}
	size := t.max / 2
	for len(p) > 0 {
		if len(t.tail) < size {
			n := min(size-len(t.tail), len(p))
			t.tail = append(t.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(t.tail[t.at:], p)
		t.at = (t.at + n) % size
		p = p[n:]
	}
}

// text is what was kept, valid UTF-8, and how many bytes are missing from its
// middle.
func (t *tape) text() (string, int64) {
	missing := t.total - int64(len(t.head)+len(t.tail))
	if missing == 0 {
		return strings.ToValidUTF8(string(t.head)+string(t.tail), "\uFFFD"), 0
	}
	tail := string(t.tail[t.at:]) + string(t.tail[:t.at])
	return strings.ToValidUTF8(string(t.head), "\uFFFD") + "\n[... cut ...]\n" + strings.ToValidUTF8(tail, "\uFFFD"), missing
}
