package supervisor

import (
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// outputBuffer keeps the head and the tail of the output in one pipe, and counts the bytes
// that it drops between them.
type outputBuffer struct {
	pipe   *os.File
	max    int           // bytes to keep
	listen func([]byte)  // gets all bytes as they are read; nil: no listener
	meter  *workMeter    // nil: the work is not charged
	cpu    *limit.CPU    // for much output; nil: it takes no turns
	user   string        // of cpu
	timer  *time.Timer   // starts copyPipe; nil before start
	ended  chan struct{} // closed when copyPipe has returned

	mu     sync.Mutex // held while the pipe is read; guards the fields below
	head   []byte
	tail   []byte // a ring of max/2 bytes
	oldest int    // index of the ring's oldest byte
	total  int64  // bytes written
}

// pipeBuffer has the size of a pipe.
type pipeBuffer [64 << 10]byte

var pipeBuffers = sync.Pool{New: func() any { return new(pipeBuffer) }}

// outputDelay is how long output waits in its pipe before a goroutine reads it. A short run
// needs no goroutine. A long run that fills its pipe at once waits at most outputDelay plus
// pollTime.
const outputDelay = 10 * time.Millisecond

// maxSoonBytes of output are read as soon as they are there: more than an ordinary run prints.
const maxSoonBytes = 4 << 20

func newOutputBuffer(pipe *os.File, max int, listen func([]byte)) *outputBuffer {
	return &outputBuffer{pipe: pipe, max: max, listen: listen, ended: make(chan struct{})}
}

// printTo returns the listen function of one stream; nil if there is no listener.
func printTo(listener OutputListener, stream string) func([]byte) {
	if listener == nil {
		return nil
	}
	return func(text []byte) { listener.Print(stream, text) }
}

// start makes a goroutine copy the pipe after outputDelay. It is called at most once, before stop.
func (b *outputBuffer) start() { b.timer = time.AfterFunc(outputDelay, b.copyPipe) }

// copyPipe reads the pipe until it is closed or stop ends it.
func (b *outputBuffer) copyPipe() {
	defer close(b.ended)
	conn, err := b.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		buf := pipeBuffers.Get().(*pipeBuffer)
		defer pipeBuffers.Put(buf)
		for {
			n, err := b.readInTurn(int(fd), buf[:])
			if n <= 0 {
				return err != unix.EAGAIN
			}
			if b.meter != nil {
				b.meter.wait()
			}
		}
	})
}

// readInTurn reads the pipe once. After maxSoonBytes it reads in the turn of the run's user.
func (b *outputBuffer) readInTurn(fd int, buf []byte) (n int, err error) {
	b.mu.Lock()
	isFlood := b.total > maxSoonBytes
	b.mu.Unlock()
	if b.cpu == nil || !isFlood {
		return b.read(fd, buf)
	}
	b.cpu.Compute(b.user, len(buf), func() { n, err = b.read(fd, buf) })
	return n, err
}

// read reads the pipe once, without waiting.
func (b *outputBuffer) read(fd int, buf []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if n, err = unix.Read(fd, buf); err != unix.EINTR {
			break
		}
	}
	if n > 0 {
		b.append(buf[:n])
		if b.meter != nil {
			b.meter.addPrinted(n)
		}
	}
	return n, err
}

// catchUp reads the current content of the pipe, so that the listener gets it before the
// guest's next frame. Only one goroutine may call it.
func (b *outputBuffer) catchUp() {
	if conn, err := b.pipe.SyscallConn(); err == nil {
		buf := pipeBuffers.Get().(*pipeBuffer)
		defer pipeBuffers.Put(buf)
		_ = conn.Control(func(fd uintptr) { _, _ = b.read(int(fd), buf[:]) })
	}
}

// stop ends copyPipe and reads the rest of the pipe. The writer is frozen or has ended. stop
// reads at most as much as the pipe can hold, so a writer that continues cannot delay it.
// text may be called afterwards.
func (b *outputBuffer) stop() {
	if b.timer != nil && !b.timer.Stop() { // copyPipe has begun
		_ = b.pipe.SetReadDeadline(time.Unix(1, 0))
		<-b.ended
		_ = b.pipe.SetReadDeadline(time.Time{})
	}
	conn, err := b.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		buf := pipeBuffers.Get().(*pipeBuffer)
		defer pipeBuffers.Put(buf)
		for left := -1; left != 0; {
			n, _ := b.read(int(fd), buf[:])
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

func (b *outputBuffer) append(p []byte) {
	if b.listen != nil {
		b.listen(p)
	}
	b.keep(p)
}

func (b *outputBuffer) keep(p []byte) {
	b.total += int64(len(p))
	tailSize := b.max / 2
	if free := b.max - tailSize - len(b.head); free > 0 {
		n := min(free, len(p))
		b.head = append(b.head, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		if len(b.tail) < tailSize {
			n := min(tailSize-len(b.tail), len(p))
			b.tail = append(b.tail, p[:n]...)
			p = p[n:]
			continue
		}
		n := copy(b.tail[b.oldest:], p)
		b.oldest = (b.oldest + n) % tailSize
		p = p[n:]
	}
}

// printLate adds text of a thread of an earlier run to the output. The listener hears from which run it is.
func (l *runLoop) printLate(body []byte) error {
	var late protocol.Late
	if err := l.process.Conn.Decode(protocol.KindLate, body, &late); err != nil {
		return err
	}
	buffer := map[string]*outputBuffer{"stdout": l.stdout, "stderr": l.stderr}[late.Stream]
	if buffer == nil || len(late.ExecutionID) > sandbox.MaxNameBytes {
		return &protocol.IllegalFrame{Why: "late text has no stream, or an execution with a name that is too long"}
	}
	buffer.mu.Lock()
	defer buffer.mu.Unlock()
	if l.callbacks.Listener != nil {
		l.callbacks.Listener.PrintLate(late.ExecutionID, late.Stream, late.Text)
	}
	buffer.keep([]byte(late.Text))
	return nil
}

// text returns the kept output as valid UTF-8, and adds the number of dropped bytes to
// truncated[name].
func (b *outputBuffer) text(name string, truncated map[string]int64) string {
	dropped := b.total - int64(len(b.head)+len(b.tail))
	if dropped == 0 {
		return validText(b.head, b.tail)
	}
	truncated[name] += dropped
	return validText(b.head) + "\n[... cut ...]\n" + validText(b.tail[b.oldest:], b.tail[:b.oldest])
}

// validText joins the parts of a text. Bytes that are not UTF-8 become U+FFFD. strings.ToValidUTF8 reads a valid text
// ten times more slowly than utf8.ValidString does, which was a tenth of the service's time for a run that prints
// 900 kB.
func validText(parts ...[]byte) string {
	var joined strings.Builder
	for _, part := range parts {
		joined.Write(part)
	}
	if text := joined.String(); utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(joined.String(), "\uFFFD")
}
