package parse

import (
	"bufio"
	"encoding/gob"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// childArgv0 is argv[0] of the binary when it runs as a parser child.
const childArgv0 = "glasshouse-parse"

// cpuLimit is the CPU time that a child allows for a statement. An allowed list of 50 000 items
// takes a sixth of a second.
func cpuLimit(q Request) time.Duration {
	most := time.Second + time.Duration(len(q.SQL)>>10)*4*time.Millisecond
	if q.Derive == Stages || q.Derive == Why || q.Derive == WhyNot { // up to maxDerived statements are parsed
		most *= 10
	}
	return most
}

// wallClockFactor is the multiple of cpuLimit that a statement may take in real time, because the
// machine may be busy. The pool waits one second longer.
const wallClockFactor = 10

// startCPUWatchdog exits this process when a statement exceeds its limit, unless stop is called. The
// timer also fires during an endless loop in C, and after the service has died.
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

// cpuTimeUsed returns the CPU time of this process.
func cpuTimeUsed() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails only for invalid arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// init turns any binary that links this package into a parser child if it is started as one. Tests
// need no code for it, and main cannot forget it.
func init() { ServeIfChild() }

// ServeIfChild returns immediately if this process is not a parser child. Otherwise it never returns.
func ServeIfChild() {
	if os.Args[0] != childArgv0 {
		return
	}
	// Collecting after every few megabytes would take longer than most statements.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(256 << 20)
	in, buf := gob.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	answer := gob.NewEncoder(buf)
	for {
		var q Request
		if in.Decode(&q) != nil {
			os.Exit(0) // the service has ended
		}
		out := startCPUWatchdog(q)
		sent := answer.Encode(ParseInProcess(q)) == nil && buf.Flush() == nil
		out()
		if !sent {
			os.Exit(0)
		}
	}
}
