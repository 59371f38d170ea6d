package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// Bounds of the notes, outputs and other values that are kept of one run.
const (
	maxLogs           = 1000
	maxVariables      = 200
	maxNotesPerName   = 50
	maxNoteBytes      = 16 << 20 // total of the frames with notes
	maxOutputs        = 61       // the first 50, the newest 10 and the result
	maxOutputBytes    = 16 << 20 // total of the frames with outputs; our guest code sends at most 14 MiB of data
	maxSummaryRunes   = 300
	maxTypesPerOutput = 50  // each type is stored and examined separately
	maxDepth          = 500 // of JSON: history adds some levels, and Python reads at most 1000
)

// runLoop reads the frames of one run, answers the guest's requests, and keeps the notes and
// outputs of the code.
type runLoop struct {
	process   *isolate.Process
	callbacks Callbacks
	pump      *recordingPump // nil if the run is not debugged
	watchdog  *watchdog
	stdout    *outputBuffer
	stderr    *outputBuffer
	meter     *workMeter
	isAlone   bool // no other run is active

	debugInfo       sandbox.DebugInfo
	outputs         []sandbox.Output
	truncated       map[string]int64
	outputBytesLeft int
	noteBytesLeft   int
	frames          int // number of frames read so far
}

// pollTime is how long a run may block the calling thread in poll(2) if no other run is
// active. The guest wakes a thread in poll faster than a goroutine.
const pollTime = time.Millisecond

// run reads frames until the guest's Done frame, whose body it returns.
func (l *runLoop) run(ctx context.Context) ([]byte, error) {
	// A run that ends within pollTime needs no goroutines for its output.
	isShort := l.isAlone && l.process.Conn.WaitReadable(pollTime)
	if !isShort {
		l.startOutput()
	}
	for {
		kind, body, err := l.readFrame()
		if isShort && kind != protocol.KindDone {
			isShort = false
			l.startOutput()
		}
		if err != nil {
			return nil, err
		}
		switch kind {
		case protocol.KindDone:
			return body, nil
		case protocol.KindStop:
			l.catchUpOutput()
			err = l.handleStop(ctx, body)
		default:
			err = l.handleFrame(ctx, kind, body)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *runLoop) startOutput() {
	l.stdout.start()
	l.stderr.start()
}

// catchUpOutput gives the listener the output that was printed before the current frame, if it wants that order.
func (l *runLoop) catchUpOutput() {
	if l.callbacks.Ordered {
		l.stdout.catchUp()
		l.stderr.catchUp()
	}
}

// readFrame returns the guest's next frame. Before that it gives the debugger all records
// that the guest wrote before the frame.
func (l *runLoop) readFrame() (protocol.Kind, []byte, error) {
	l.meter.wait()
	kind, body, err := l.process.Conn.Read()
	l.meter.addFrame(len(body))
	if err == nil && l.isFlood() {
		err = l.process.Conn.Illegal("more frames than the guest had CPU time to send")
	}
	if err == nil && l.pump != nil {
		if kind == protocol.KindRecords { // the guest's ring is full, and it waits
			err = l.pump.emptyRing()
		} else {
			_, err = l.pump.deliver()
		}
	}
	return kind, body, err
}

// The guest's Python code takes more than a hundred times minFrameTime to send a frame, and user code that writes one
// frame after the other takes 0.7 us for each on a fast machine, more than write(2) alone. Frames that come faster
// were written many at once, which only an attacker does: they would cost the supervisor, which takes about 1 us to
// read one, more CPU time than their sender. Slower floods are charged to the user (workMeter).
const (
	minFrameTime    = 100 * time.Nanosecond
	framesPerSample = 5000 // the rate is checked after each such number of frames; the first frames are free
)

// isFlood reports whether the process has sent more frames than its CPU time allows.
func (l *runLoop) isFlood() bool {
	if l.frames++; l.frames%framesPerSample != 0 {
		return false
	}
	used := l.meter.used() // 0 if it cannot be read
	return used > 0 && used < time.Duration(l.frames-framesPerSample)*minFrameTime
}

// handleFrame handles a frame that may arrive at any time during a run.
func (l *runLoop) handleFrame(ctx context.Context, kind protocol.Kind, body []byte) error {
	switch {
	case kind == protocol.KindNote:
		return l.keepNote(body)
	case kind == protocol.KindOutput:
		return l.keepOutput(ctx, body)
	case kind == protocol.KindSync: // the listener has the notes and outputs before it
		return l.meter.measure(minMeasuredBytes, func() error {
			return l.process.Conn.Write(protocol.KindSync, struct{}{})
		})
	case kind == protocol.KindLate && l.callbacks.Ordered:
		return l.printLate(body)
	case kind == protocol.KindRequest:
		l.catchUpOutput()
		return l.answerRequest(ctx, body)
	case kind == protocol.KindRecords && l.pump != nil:
		return l.process.Conn.Write(protocol.KindRecords, struct{}{}) // readFrame has emptied the ring
	case kind == protocol.KindLog && l.pump != nil:
		l.catchUpOutput()
		return l.meter.measure(len(body), func() error {
			err := l.process.Conn.Check(kind, body)
			if err == nil {
				l.callbacks.Debugger.Logged(body)
			}
			return err
		})
	}
	return &protocol.IllegalFrame{Why: fmt.Sprintf("a %c frame came in the middle of a run", kind)}
}

// A debugger's command that continues after the end of its context is interrupted once each
// interruptInterval, because the first interrupt may come before the command begins. After
// interruptTimeout the process is killed.
const (
	interruptTimeout  = time.Second
	interruptInterval = 50 * time.Millisecond
)

// handleStop lets the debugger control the stopped program until the program resumes.
func (l *runLoop) handleStop(ctx context.Context, location []byte) error {
	if l.callbacks.Debugger == nil {
		return &protocol.IllegalFrame{Why: "a stop came in a run that is not debugged"}
	}
	l.meter.add(stopWork)
	check := func() error { return l.process.Conn.Check(protocol.KindStop, location) }
	if err := l.meter.measure(len(location), check); err != nil {
		return err
	}
	resumeClock := sync.OnceFunc(l.watchdog.hold())
	defer resumeClock()
	// The deadline waits during a stop, so the supervisor itself checks that all threads are stopped.
	measured := l.meter.begin()
	l.process.Freeze()
	measured()
	defer func() {
		defer l.meter.begin()()
		l.process.Resume()
	}()
	var commandErr error // of the connection
	command := func(commandCtx context.Context, limit time.Duration, command any) (answer []byte, err error) {
		defer func() { commandErr = err }()
		l.meter.wait()
		commandCtx, cancel := context.WithTimeout(commandCtx, limit)
		defer cancel()
		answered := l.interruptAfter(commandCtx) // before the write, which may block
		l.process.Resume()
		defer l.process.Freeze()
		defer answered()
		if err := l.process.Conn.Write(protocol.KindCommand, command); err != nil {
			return nil, err
		}
		for {
			kind, body, err := l.readFrame()
			switch {
			case err != nil:
				return nil, err
			case kind == protocol.KindValue:
				l.meter.add(time.Duration(valueByteWork * len(body)))
				return body, l.process.Conn.Check(kind, body)
			}
			if err := l.handleFrame(ctx, kind, body); err != nil {
				return nil, err
			}
		}
	}
	var resume any
	err := l.meter.measure(len(location), func() (err error) { // a long location is forged
		resume, err = l.callbacks.Debugger.Stopped(ctx, location, command)
		return err
	})
	switch {
	case commandErr != nil:
		return commandErr
	case err != nil: // the debugger cannot read the guest's location
		return &protocol.IllegalFrame{Why: err.Error()}
	}
	l.watchdog.throttle()
	resumeClock() // before the write, which blocks if the program does not read
	l.process.Resume()
	return l.meter.measure(minMeasuredBytes, func() error { // it may have many breakpoints
		return l.process.Conn.Write(protocol.KindCommand, resume)
	})
}

// interruptAfter interrupts the program's command when ctx ends, and kills the program if
// the command still continues. It stops watching when answered is called.
func (l *runLoop) interruptAfter(ctx context.Context) (answered func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(ended)
		again, kill := time.NewTicker(interruptInterval), time.After(interruptTimeout)
		defer again.Stop()
		for {
			l.watchdog.interrupt()
			select {
			case <-again.C:
			case <-kill:
				l.process.Kill()
				return
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		if !release() {
			<-ended
		}
	}
}

// keepNote keeps a note within bounds. It does not parse a note beyond maxNoteBytes, because
// the service would pay for that work, not the sandbox.
func (l *runLoop) keepNote(body []byte) error {
	if l.noteBytesLeft -= len(body); l.noteBytesLeft < 0 {
		l.truncated["notes"]++
		return nil
	}
	var note sandbox.Note
	if err := l.meter.parse(len(body), func() error { return l.parseNote(body, &note) }); err != nil {
		return err
	}
	note.Time = time.Now().UTC()
	if note.Name == "" {
		if len(l.debugInfo.Logs) >= maxLogs {
			l.truncated["logs"]++
			return nil
		}
		l.debugInfo.Logs = append(l.debugInfo.Logs, note)
	} else {
		earlier, known := l.debugInfo.Variables[note.Name]
		if len(earlier) >= maxNotesPerName || !known && len(l.debugInfo.Variables) >= maxVariables {
			l.truncated["variables"]++
			return nil
		}
		l.debugInfo.Variables[note.Name] = append(earlier, note)
	}
	if l.callbacks.Listener == nil {
		return nil
	}
	return l.meter.measure(len(body), func() error {
		l.catchUpOutput()
		l.callbacks.Listener.Note(note)
		return nil
	})
}

func (l *runLoop) parseNote(body []byte, note *sandbox.Note) error {
	if err := l.process.Conn.Decode(protocol.KindNote, body, note); err != nil {
		return err
	}
	if sandbox.JSONDepth(body) > maxDepth {
		return &protocol.IllegalFrame{Why: fmt.Sprintf("a note is nested deeper than %d levels", maxDepth)}
	}
	return nil
}

// outputParts are the parts of an output that a guest may send.
var outputParts = []string{"role", "summary", "data", "metadata", "step", "display_id", "update"}

// keepOutput keeps a rich output within bounds. Each output is kept at once, so a killed run
// does not lose its outputs.
func (l *runLoop) keepOutput(ctx context.Context, body []byte) error {
	if l.outputBytesLeft -= len(body); l.outputBytesLeft < 0 || len(l.outputs) >= maxOutputs {
		l.truncated["outputs"]++
		return nil
	}
	var output *sandbox.Output
	err := l.meter.parse(len(body), func() (err error) {
		output, err = l.parseOutput(body)
		return err
	})
	if err != nil {
		return err
	}
	if output == nil {
		l.truncated["outputs"]++
		return nil
	}
	return l.meter.measure(len(body), func() error {
		l.showOutput(ctx, *output)
		return nil
	})
}

// showOutput keeps an output, with what the recorder makes of it, and gives it to the listener.
func (l *runLoop) showOutput(ctx context.Context, output sandbox.Output) {
	if runes := []rune(output.Summary); len(runes) > maxSummaryRunes {
		output.Summary = string(runes[:maxSummaryRunes])
	}
	output.ShownAt = time.Now().UTC()
	if l.callbacks.Recorder != nil {
		output = l.callbacks.Recorder.Show(ctx, output)
	}
	l.outputs = append(l.outputs, output)
	if l.callbacks.Listener != nil {
		l.catchUpOutput()
		l.callbacks.Listener.Output(output)
	}
}

// parseOutput returns the output of a frame, or nil if it has too many types or is nested too deep.
func (l *runLoop) parseOutput(body []byte) (*sandbox.Output, error) {
	// The parts are counted before they are parsed. encoding/json would take DATA for data, and merge both.
	if n := sandbox.JSONMemberCount(body); n > len(outputParts) {
		return nil, &protocol.IllegalFrame{Why: fmt.Sprintf("an output has %d parts", n)}
	}
	var parts map[string]json.RawMessage
	if err := l.process.Conn.Decode(protocol.KindOutput, body, &parts); err != nil {
		return nil, err
	}
	for name := range parts {
		if !slices.Contains(outputParts, name) {
			return nil, &protocol.IllegalFrame{Why: fmt.Sprintf("an output has the unknown part %q", name)}
		}
	}
	if data := parts["data"]; len(data) == 0 || data[0] != '{' {
		return nil, &protocol.IllegalFrame{Why: "an output has no data"}
	}
	if sandbox.JSONMemberCount(parts["data"]) > maxTypesPerOutput || sandbox.JSONDepth(body) > maxDepth {
		return nil, nil
	}
	var output sandbox.Output
	if err := json.Unmarshal(body, &output); err != nil {
		return nil, &protocol.IllegalFrame{Why: "an output cannot be parsed: " + err.Error()}
	}
	switch output.Role {
	case sandbox.RoleResult, sandbox.RoleDisplay, sandbox.RoleFigure:
	default:
		return nil, &protocol.IllegalFrame{Why: "an output without a role"}
	}
	if output.Step < 0 {
		return nil, &protocol.IllegalFrame{Why: fmt.Sprintf("an output has the step %d", output.Step)}
	}
	if len(output.DisplayID) > sandbox.MaxNameBytes {
		return nil, &protocol.IllegalFrame{
			Why: fmt.Sprintf("an output has a display_id of %d bytes", len(output.DisplayID)),
		}
	}
	delete(output.Data, sandbox.ArtifactMIME) // only the service refers to artifacts: it reads them for its clients
	return &output, nil
}
