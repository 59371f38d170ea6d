package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// repeatWindow is the time in which the repetitions of a log line are counted.
const repeatWindow = 10 * time.Second

// maxCountedLines bounds the memory of a repeatCounter. Further lines are written as they come.
const maxCountedLines = 1000

// newLog returns the log of a command, on stderr.
func newLog(s settings) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	if s.server.logJSON {
		log.SetFormatter(countRepeats(&logrus.JSONFormatter{}))
	} else {
		log.SetFormatter(countRepeats(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05"}))
	}
	return log
}

// flushLog writes the repetitions that a log has counted and not yet written.
func flushLog(log *logrus.Logger) {
	if counter, ok := log.Formatter.(*repeatCounter); ok {
		counter.flush()
	}
}

// serverErrors is the error log of an http.Server: each line becomes a warning.
type serverErrors struct{ log *logrus.Logger }

func (s serverErrors) Write(line []byte) (int, error) {
	s.log.Warn(strings.TrimSpace(string(line)))
	return len(line), nil
}

// repeatCounter is a formatter that writes a warning or an error once. It counts the repetitions of the next 10 s and
// then writes one line with their number, so that a failure that repeats fills neither the log nor the disk. Lines are
// the same if they differ only in the numbers of their message or error; all other fields must be equal, so a line
// about another request or execution is always written.
type repeatCounter struct {
	inner logrus.Formatter

	mu    sync.Mutex
	lines map[string]*countedLine
}

// countedLine is a line that was written in the current window.
type countedLine struct {
	last   *logrus.Entry // the last repetition
	count  int           // of repetitions since the line was written
	window *time.Timer
}

func countRepeats(inner logrus.Formatter) *repeatCounter {
	return &repeatCounter{inner: inner, lines: map[string]*countedLine{}}
}

// isSummary marks, in an entry's context, a line that a repeatCounter itself writes.
type isSummary struct{}

// Format implements logrus.Formatter. It returns no bytes for a repetition.
func (c *repeatCounter) Format(entry *logrus.Entry) ([]byte, error) {
	if entry.Level > logrus.WarnLevel || entry.Context != nil && entry.Context.Value(isSummary{}) != nil {
		return c.inner.Format(entry)
	}
	if c.isRepetition(entry) {
		return nil, nil
	}
	return c.inner.Format(entry)
}

func (c *repeatCounter) isRepetition(entry *logrus.Entry) bool {
	key := lineKey(entry)
	c.mu.Lock()
	defer c.mu.Unlock()
	if line := c.lines[key]; line != nil {
		line.count++
		line.last = &logrus.Entry{
			Logger: entry.Logger, Data: maps.Clone(entry.Data), Level: entry.Level, Message: entry.Message,
		}
		return true
	}
	if len(c.lines) < maxCountedLines {
		c.lines[key] = &countedLine{window: time.AfterFunc(repeatWindow, func() { c.endWindow(key) })}
	}
	return false
}

// number matches a number that belongs to no word, such as a count, a pid or a time, but not a part of an id.
var number = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(µs|ms|s|m)?\b`)

// lineKey returns a text that is equal for lines that are the same.
func lineKey(entry *logrus.Entry) string {
	key := entry.Level.String() + "\n" + number.ReplaceAllString(entry.Message, "0")
	for _, name := range slices.Sorted(maps.Keys(entry.Data)) {
		value := fmt.Sprint(entry.Data[name])
		if name == logrus.ErrorKey {
			value = number.ReplaceAllString(value, "0")
		}
		key += "\n" + name + "=" + value
	}
	return key
}

// endWindow writes the number of repetitions, and begins another window if there were any.
func (c *repeatCounter) endWindow(key string) {
	c.mu.Lock()
	line := c.lines[key]
	if line == nil { // flushed
		c.mu.Unlock()
		return
	}
	count, last := line.count, line.last
	line.count = 0
	if count == 0 {
		delete(c.lines, key)
	} else {
		line.window.Reset(repeatWindow)
	}
	c.mu.Unlock()
	writeSummary(last, count)
}

func writeSummary(last *logrus.Entry, count int) {
	if count == 0 {
		return
	}
	times := "once"
	if count > 1 {
		times = fmt.Sprintf("%d times", count)
	}
	summary := last.WithContext(context.WithValue(context.Background(), isSummary{}, true))
	summary.Logf(last.Level, "%s (repeated %s in %.0f s)", last.Message, times, repeatWindow.Seconds())
}

// flush ends all windows now.
func (c *repeatCounter) flush() {
	c.mu.Lock()
	lines := c.lines
	c.lines = map[string]*countedLine{}
	c.mu.Unlock()
	for _, line := range lines {
		line.window.Stop()
		writeSummary(line.last, line.count)
	}
}
