package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// Bounds of what is kept of one run.
const (
	maxLogs           = 1000
	maxVariables      = 200
	maxNotesPerName   = 50
	maxNoteBytes      = 16 << 20 // of the notes' frames
	maxOutputs        = 50
	maxOutputBytes    = 16 << 20 // of the outputs' frames; an honest guest sends half of it
	maxSummaryRunes   = 300
	maxTypesPerOutput = 50  // each is kept and examined by itself
	maxDepth          = 500 // of JSON: history stores it some levels deeper, and Python reads at most 1000
)

// runLoop reads the frames of one run, answers the guest's requests and keeps what the
// code notes and shows.
type runLoop struct {
	process   *isolate.Process
	callbacks Callbacks
	pump      *recordingPump // nil if the run is not debugged
	watchdog  *watchdog
	stdout    *outputBuffer
	stderr    *outputBuffer
	isAlone   bool          // no other run is active
	cpuBefore time.Duration // CPU time of the process when the run began

	debugInfo       sandbox.DebugInfo
	outputs         []sandbox.Output
	truncated       map[string]int64
	outputBytesLeft int
	noteBytesLeft   int
	frames          int // read so far
}

// pollTime is how long a run that is alone may keep the calling thread in a poll, which
// the guest wakes faster than it wakes a goroutine.
const pollTime = time.Millisecond

// run reads frames until the guest's Done frame, whose body it returns.
func (l *runLoop) run(ctx context.Context) ([]byte, error) {
	// A run that is over within pollTime needs no goroutines for its output.
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

// catchUpOutput gives the listener what was printed before the frame that has come.
func (l *runLoop) catchUpOutput() {
	if l.callbacks.Listener != nil {
		l.stdout.catchUp()
		l.stderr.catchUp()
	}
}

// readFrame returns the guest's next frame, after the debugger has got all that was
// recorded before it.
func (l *runLoop) readFrame() (protocol.Kind, []byte, error) {
	kind, body, err := l.process.Conn.Read()
	if err == nil && l.isFlood() {
		err = l.process.Conn.Illegal("more of them than it had the time to send")
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

// Python takes more than ten times minFrameTime to send a frame, and the supervisor about
// minFrameTime to read one. Frames that come faster were not sent by Python, and would cost
// others more than their sender.
const (
	minFrameTime    = time.Microsecond
	framesPerSample = 5000 // the first so many are free, and the rate is checked after each so many
)

// isFlood reports whether more frames have come than the process had CPU time for.
func (l *runLoop) isFlood() bool {
	if l.frames++; l.frames%framesPerSample != 0 {
		return false
	}
	used := l.process.CPU() // 0 if it cannot be read
	return used > 0 && used-l.cpuBefore < time.Duration(l.frames-framesPerSample)*minFrameTime
}

// handleFrame handles a frame that may come at any time of a run.
func (l *runLoop) handleFrame(ctx context.Context, kind protocol.Kind, body []byte) error {
	switch {
	case kind == protocol.KindNote:
		return l.keepNote(body)
	case kind == protocol.KindOutput:
		return l.keepOutput(ctx, body)
	case kind == protocol.KindRequest:
		l.catchUpOutput()
		return l.answerRequest(ctx, body)
	case kind == protocol.KindRecords && l.pump != nil:
		return l.process.Conn.Write(protocol.KindRecords, struct{}{}) // readFrame has emptied the ring
	case kind == protocol.KindLog && l.pump != nil:
		l.catchUpOutput()
		l.callbacks.Debugger.Logged(body)
		return nil
	}
	return &protocol.IllegalFrame{Why: fmt.Sprintf("%c in the middle of a run", kind)}
}

// A debugger's command that goes on after its context is interrupted each interruptInterval,
// as the first interrupt may come before the command begins, and killed after interruptTimeout.
const (
	interruptTimeout  = time.Second
	interruptInterval = 50 * time.Millisecond
)

// handleStop gives the debugger the program, which is stopped, until it goes on.
func (l *runLoop) handleStop(ctx context.Context, location []byte) error {
	if l.callbacks.Debugger == nil {
		return &protocol.IllegalFrame{Why: "a stop of a run that is not debugged"}
	}
	resumeClock := sync.OnceFunc(l.watchdog.hold())
	defer resumeClock()
	// The clock is held, so all threads must really be stopped, whatever the guest claims.
	l.process.Freeze()
	defer l.process.Resume()
	command := func(commandCtx context.Context, command any) ([]byte, error) {
		answered := l.interruptAfter(commandCtx) // before anything that the program may not read
		l.process.Resume()
		defer l.process.Freeze()
		defer answered()
		if err := l.process.Conn.Write(protocol.KindCommand, command); err != nil {
			return nil, err
		}
		for {
			kind, body, err := l.readFrame()
			if err != nil || kind == protocol.KindValue {
				return body, err
			}
			if err := l.handleFrame(ctx, kind, body); err != nil {
				return nil, err
			}
		}
	}
	resume, err := l.callbacks.Debugger.Stopped(ctx, location, command)
	if err != nil {
		return err
	}
	l.watchdog.throttle()
	resumeClock() // before the program goes on: it may not read what is written
	l.process.Resume()
	return l.process.Conn.Write(protocol.KindCommand, resume)
}

// interruptAfter interrupts the program's command when ctx ends, and kills the program if
// that does not help, until answered is called.
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

// keepNote keeps a note within bounds. A note beyond maxNoteBytes is not even parsed: the
// code does not pay for that work.
func (l *runLoop) keepNote(body []byte) error {
	if l.noteBytesLeft -= len(body); l.noteBytesLeft < 0 {
		l.truncated["notes"]++
		return nil
	}
	var note sandbox.Note
	if err := json.Unmarshal(body, &note); err != nil || sandbox.JSONDepth(body) > maxDepth {
		return &protocol.IllegalFrame{Why: "a note that cannot be parsed, or nests too deep"}
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
	if l.callbacks.Listener != nil {
		l.catchUpOutput()
		l.callbacks.Listener.Note(note)
	}
	return nil
}

// keepOutput keeps a rich output within bounds. It is kept as it comes, so a run that is
// ended keeps what it has shown.
func (l *runLoop) keepOutput(ctx context.Context, body []byte) error {
	if l.outputBytesLeft -= len(body); l.outputBytesLeft < 0 || len(l.outputs) >= maxOutputs {
		l.truncated["outputs"]++
		return nil
	}
	var parts struct { // the parts are counted before they are parsed
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &parts); err != nil || len(parts.Data) == 0 || parts.Data[0] != '{' {
		return &protocol.IllegalFrame{Why: "an output that cannot be parsed"}
	}
	if sandbox.JSONMemberCount(parts.Data) > maxTypesPerOutput || sandbox.JSONDepth(body) > maxDepth {
		l.truncated["outputs"]++
		return nil
	}
	var output sandbox.Output
	if err := json.Unmarshal(body, &output); err != nil {
		return &protocol.IllegalFrame{Why: "an output that cannot be parsed"}
	}
	if runes := []rune(output.Summary); len(runes) > maxSummaryRunes {
		output.Summary = string(runes[:maxSummaryRunes])
	}
	if l.callbacks.Recorder != nil {
		output = l.callbacks.Recorder.Show(ctx, output)
	}
	l.outputs = append(l.outputs, output)
	if l.callbacks.Listener != nil {
		l.catchUpOutput()
		l.callbacks.Listener.Output(output)
	}
	return nil
}
