package parse

import (
	"bufio"
	"encoding/gob"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// stageName is argv[0] of the binary when it is a child.
const childArgv0 = "glasshouse-parse"

// cpuLimit is the CPU time that one statement may take, in a child's own eyes. A legal
// list of 50 000 takes a sixth of a second.
func cpuLimit(q Request) time.Duration {
	return time.Second + time.Duration(len(q.SQL)>>10)*4*time.Millisecond
}

// patience is how many times its limit a statement may take by the clock, where the
// machine has much else to do; the pool waits a little longer.
const wallClockFactor = 10

// startCPUWatchdog ends this process when a statement has had its time, unless it is put out. A
// hang in C stops no timer, so even with the service gone this ends it; and before
// its time is over nothing runs beside the statement.
func startCPUWatchdog(q Request) (out func()) {
	most, began, start := cpuLimit(q), cpuTimeUsed(), time.Now()
	over := make(chan struct{})
	timer := time.AfterFunc(most, func() {
		for wait := time.Duration(0); ; wait = most / 4 {
			select {
			case <-over:
				return
			case <-time.After(wait):
			}
			if cpuTimeUsed()-began >= most || time.Since(start) >= wallClockFactor*most {
				os.Exit(3)
			}
		}
	})
	return func() {
		timer.Stop()
		close(over)
	}
}

// cpuTimeUsed is the CPU time that this process has had.
func cpuTimeUsed() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails for a wrong argument only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// init makes a child of any binary that holds this package, tests' too, with no
// call that a main could forget: before main runs, a child is what it is to be.
func init() { ServeIfChild() }

// ServeIfChild returns at once, except in a child, where it never does.
func ServeIfChild() {
	if os.Args[0] != childArgv0 {
		return
	}
	// A collection after every few megabytes would take longer than most statements.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(256 << 20)
	in, buf := gob.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	answer := gob.NewEncoder(buf)
	for {
		var q Request
		if in.Decode(&q) != nil {
			os.Exit(0) // the service has gone
		}
		out := startCPUWatchdog(q)
		result := ParseInProcess(q)
		sent := answer.Encode(result) == nil && buf.Flush() == nil
		if sent && result.Fault == nil { // while the service judges
			sent = answer.Encode(Fingerprint(result.SQL)) == nil && buf.Flush() == nil
		}
		out()
		if !sent {
			os.Exit(0)
		}
	}
}
