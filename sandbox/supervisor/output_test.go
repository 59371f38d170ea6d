package supervisor

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStopReadsTheRestOfThePipe(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4095, 4096, 4097, 65536} {
		pipe, writer := newPipe(t)
		if _, err := writer.Write(bytes.Repeat([]byte("x"), size)); err != nil {
			t.Fatal(err)
		}
		buffer := newOutputBuffer(pipe, 1<<20, nil)
		buffer.stop()
		truncated := map[string]int64{}
		if text := buffer.text("stdout", truncated); len(text) != size || len(truncated) != 0 {
			t.Errorf("got %d bytes, truncated %v; want %d bytes, none truncated", len(text), truncated, size)
		}
	}
}

func TestStopEndsWhileTheWriterGoesOn(t *testing.T) {
	t.Parallel()
	pipe, writer := newPipe(t)
	refill := func(p []byte) { _, _ = writer.Write(p) } // as much as was read
	refill(make([]byte, 10_000))
	buffer, stopped := newOutputBuffer(pipe, 1000, refill), make(chan struct{})
	go func() {
		defer close(stopped)
		buffer.stop()
	}()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Error("stop still reads after 20 s")
	}
}

// newPipe returns a pipe whose read end does not block.
func newPipe(t *testing.T) (pipe, writer *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	pipe, writer = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-guest")
	t.Cleanup(func() {
		_ = pipe.Close()
		_ = writer.Close()
	})
	return pipe, writer
}
