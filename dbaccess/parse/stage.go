package parse

import (
	"bufio"
	"encoding/gob"
	"os"
	"time"
)

// stageName is argv[0] of the binary when it is a child.
const stageName = "glasshouse-parse"

// limit is the longest that one statement may take, in a child's own eyes; the
// pool waits a little longer. A legal list of 50 000 takes a sixth of a second.
func limit(q Request) time.Duration {
	return time.Second + time.Duration(len(q.SQL)>>10)*4*time.Millisecond
}

// init makes a child of any binary that holds this package, tests' too, with no
// call that a main could forget: before main runs, a child is what it is to be.
func init() { Stage() }

// Stage returns at once, except in a child, where it never does.
func Stage() {
	if os.Args[0] != stageName {
		return
	}
	in, out := gob.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	answer := gob.NewEncoder(out)
	for {
		var q Request
		if in.Decode(&q) != nil {
			os.Exit(0) // the service has gone
		}
		// A hang in C stops no timer: even with the service gone, this ends it.
		bomb := time.AfterFunc(limit(q), func() { os.Exit(3) })
		result := Here(q)
		bomb.Stop()
		if answer.Encode(result) != nil || out.Flush() != nil {
			os.Exit(0)
		}
	}
}
