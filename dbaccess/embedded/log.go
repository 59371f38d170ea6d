package embedded

import (
	"io"
	"os"
	"strings"
	"sync"
)

const (
	maxLogBytes  = 8 << 20 // of one file; there are two, path and path.1
	maxTailBytes = 2 << 10 // kept for error messages
)

// boundedLog is a log file that is renamed when it is full. Each process of the server writes into a pipe of its own,
// and a goroutine copies the pipe to the file. A server that outlives the service for a second writes into a closed
// pipe, which PostgreSQL ignores.
type boundedLog struct {
	path   string
	copies sync.WaitGroup

	mu   sync.Mutex
	file *os.File
	size int64
	last []byte
}

func openLog(path string) (*boundedLog, error) {
	l := &boundedLog{path: path}
	return l, l.open()
}

func (l *boundedLog) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	st, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	l.file, l.size = file, st.Size()
	return nil
}

// newWriter returns the write end of a new pipe for one process. The caller closes it after the start of the process.
func (l *boundedLog) newWriter() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.copies.Go(func() {
		defer r.Close()
		_, _ = io.Copy(l, r)
	})
	return w, nil
}

// Write writes p and never returns an error: if a full disk stopped the copying, the server would block on its pipe.
func (l *boundedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p...)
	l.last = l.last[max(0, len(l.last)-maxTailBytes):]
	if l.size+int64(len(p)) > maxLogBytes {
		_ = l.file.Close()
		_ = os.Rename(l.path, l.path+".1")
		if err := l.open(); err != nil {
			l.size = maxLogBytes // try again with the next line
			return len(p), nil
		}
	}
	n, _ := l.file.Write(p)
	l.size += int64(n)
	return len(p), nil
}

// tail returns the end of the log of this run, on one line.
func (l *boundedLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(strings.Fields(string(l.last)), " ")
}

func (l *boundedLog) close() {
	l.copies.Wait() // returns because the server has ended and its pipes are closed
	_ = l.file.Close()
}
