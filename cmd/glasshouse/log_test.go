package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// messages returns the messages of a log in JSON, in their order.
func messages(log string) (list []string) {
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, `"msg":"`)
		message, _, _ := strings.Cut(rest, `"`)
		list = append(list, message)
	}
	return list
}

func TestRepeatedLogLinesAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logrus.New()
		log.SetOutput(&out)
		log.SetFormatter(countRepeats(&logrus.JSONFormatter{}))
		for n := range 1000 {
			log.Warnf("cannot prepare sandbox %d: too many open files; retrying in %dms", n, n)
			log.WithField("request_id", fmt.Sprint("r", n%2)).WithError(errors.New("x")).Error("a request failed")
			if n < 2 {
				log.Info("request") // an access log has every request
			}
		}
		time.Sleep(repeatWindow + time.Second)
		synctest.Wait()
		log.Warn("cannot prepare sandbox 7: too many open files; retrying in 7ms")
		time.Sleep(3 * repeatWindow) // the windows end
		synctest.Wait()
		log.Warn("cannot prepare sandbox 8: too many open files; retrying in 8ms")
		log.Warn("cannot prepare sandbox 9: too many open files; retrying in 9ms")
		flushLog(log)
		got := messages(out.String())
		slices.Sort(got[5:8]) // three windows ended at the same time
		want := []string{
			"cannot prepare sandbox 0: too many open files; retrying in 0ms",
			"a request failed",
			"request",
			"a request failed",
			"request",
			"a request failed (repeated 499 times in 10 s)",
			"a request failed (repeated 499 times in 10 s)",
			"cannot prepare sandbox 999: too many open files; retrying in 999ms (repeated 999 times in 10 s)",
			"cannot prepare sandbox 7: too many open files; retrying in 7ms (repeated once in 10 s)",
			"cannot prepare sandbox 8: too many open files; retrying in 8ms",
			"cannot prepare sandbox 9: too many open files; retrying in 9ms (repeated once in 10 s)",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !strings.Contains(out.String(), `"error":"x","level":"error","msg":"a request failed (repeated`) {
			t.Errorf("the line with the number of repetitions has lost its fields:\n%s", out.String())
		}
	})
}
