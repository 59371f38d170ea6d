package supervisor

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is in the pipe is taken, whatever it is, and a writer that goes on holds nobody up.
func TestTheTapeStops(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 65536} {
		pipe, writer := outputs(t)
		if _, err := writer.Write(bytes.Repeat([]byte("x"), size)); err != nil {
			t.Fatal(err)
		}
		tape := newTape(pipe, 1<<20, nil)
		tape.stop()
		if text, missing := tape.text(); len(text) != size || missing != 0 {
			t.Errorf("of %d bytes it has %d", size, len(text))
		}
	}
	pipe, writer := outputs(t)
	again := func(p []byte) { _, _ = writer.Write(p) } // as much as was taken
	again(make([]byte, 10_000))
	tape, over := newTape(pipe, 1000, again), make(chan struct{})
	go func() {
		defer close(over)
		tape.stop()
	}()
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("it takes and takes")
	}
}

func outputs(t *testing.T) (pipe, writer *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	pipe, writer = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-child")
	t.Cleanup(func() {
		_ = pipe.Close()
		_ = writer.Close()
	})
	return pipe, writer
}
