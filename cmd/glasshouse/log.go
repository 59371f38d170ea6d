package main

import (
	"os"
	"strings"

	"github.com/sirupsen/logrus"
)

// newLog returns the log of a command, on stderr.
func newLog(s settings) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	if s.server.logJSON {
		log.SetFormatter(&logrus.JSONFormatter{})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05"})
	}
	return log
}

// serverErrors is the error log of an http.Server: each line becomes a warning.
type serverErrors struct{ log *logrus.Logger }

func (s serverErrors) Write(line []byte) (int, error) {
	s.log.Warn(strings.TrimSpace(string(line)))
	return len(line), nil
}
