package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

const (
	maxOutputs     = 50
	maxSummary     = 300      // characters
	maxTypes       = 50       // of one output: each is kept and looked at by itself
	maxDepth       = 500      // of JSON: history has it some levels deeper, and Python reads no more than 1000
	maxOutputBytes = 16 << 20 // of one run's outputs, twice what an honest child sends
	maxNoteBytes   = 16 << 20 // of its notes
)

// says is one run, as its child tells it.
type says struct {
	process *isolate.Process
	e       *sandbox.Execution
	desk    RequestHandler
	watch   DebugDriver // nil, with reel: it is not watched
	reel    *reel
	cut     *cutter
	live    OutputListener // nil: nobody listens

	alone   bool   // no other run goes on
	record  func() // begins to keep what is printed; called once, or where the run is short not at all
	catchUp func() // takes what was printed so far; nil where nobody listens
	room    int    // bytes left for outputs,
	notes   int    // and for notes
	frames  int    // that have come

	before time.Duration // its CPU time when the run began
}

// Python takes ten times frameTime and more to send a frame, and to read one takes the service
// about as long as that. So frames that come faster were not sent by Python, and would cost
// others more than whoever sends them.
const (
	frameTime = time.Microsecond
	frameLot  = 5000 // of which the first is free, and after each of which is looked
)

// forged says whether more frames have come than the process has had the CPU time for.
func (s *says) forged() bool {
	if s.frames++; s.frames%frameLot != 0 {
		return false
	}
	used := s.process.CPU() // 0 where it is not to be had
	return used > 0 && used-s.before < time.Duration(s.frames-frameLot)*frameTime
}

// aloneTime is how long a run that is alone may keep the thread of who waits for it.
const aloneTime = time.Millisecond

// listen reads what the child says until its outcome, whose body it returns; it
// answers questions one by one, as the child asks them one by one.
func (s *says) listen(ctx context.Context) ([]byte, error) {
	s.room, s.notes = maxOutputBytes, maxNoteBytes
	short := s.alone && s.process.Conn.WaitReadable(aloneTime)
	if !short {
		s.record()
	}
	for {
		kind, body, err := s.next()
		if short && kind != protocol.KindDone {
			short = false
			s.record()
		}
		if err == nil {
			switch kind {
			case protocol.KindDone:
				return body, nil
			case protocol.KindStop:
				s.told(func(OutputListener) {})
				err = s.stopped(ctx, body)
			default:
				err = s.take(ctx, kind, body)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// next is the child's next frame, all that was recorded before it handed over.
func (s *says) next() (protocol.Kind, []byte, error) {
	kind, body, err := s.process.Conn.Read()
	if err == nil && s.forged() {
		err = s.process.Conn.Illegal("more of them than it had the time to send")
	}
	if err == nil {
		err = s.records(kind)
	}
	return kind, body, err
}

// records hands over what was recorded before the frame that has come, unless it only
// asks for room.
func (s *says) records(kind protocol.Kind) error {
	switch {
	case s.reel == nil:
		return nil
	case kind == protocol.KindRecords:
		return s.reel.makeRoom()
	}
	_, err := s.reel.take()
	return err
}

// take does what a frame asks for that may come at any time of a run.
func (s *says) take(ctx context.Context, kind protocol.Kind, body []byte) error {
	switch {
	case kind == protocol.KindNote:
		return s.keepNote(body)
	case kind == protocol.KindOutput:
		return s.keepOutput(ctx, body)
	case kind == protocol.KindRequest:
		s.told(func(OutputListener) {})
		return s.answer(ctx, body)
	case kind == protocol.KindRecords && s.watch != nil:
		return s.process.Conn.Write(protocol.KindRecords, struct{}{}) // there is room in the ring now
	case kind == protocol.KindLog && s.watch != nil:
		s.told(func(OutputListener) {})
		s.watch.Logged(body)
		return nil
	}
	return &protocol.IllegalFrame{Why: fmt.Sprintf("%c in the middle of a run", kind)}
}

// hanging is how long an expression may go on that was interrupted, and insisting how
// long until it is interrupted again: the first time it may not have begun.
const (
	hanging   = time.Second
	insisting = 50 * time.Millisecond
)

// stopped lets the watcher have the program that stands.
func (s *says) stopped(ctx context.Context, where []byte) error {
	if s.watch == nil {
		return &protocol.IllegalFrame{Why: "a stop of a run that is not watched"}
	}
	letGo := sync.OnceFunc(s.cut.hold())
	defer letGo()
	// It stands because it is stopped, all its threads, whatever it says of itself: no clock runs.
	s.process.Freeze()
	defer s.process.Resume()
	ask := func(patience context.Context, command any) ([]byte, error) {
		answered := s.interruptAfter(patience) // before anything that the program may not take
		s.process.Resume()
		defer s.process.Freeze()
		defer answered()
		if err := s.process.Conn.Write(protocol.KindCommand, command); err != nil {
			return nil, err
		}
		for {
			kind, body, err := s.next()
			if err != nil || kind == protocol.KindValue {
				return body, err
			}
			if err := s.take(ctx, kind, body); err != nil {
				return nil, err
			}
		}
	}
	resume, err := s.watch.Stopped(ctx, where, ask)
	if err != nil {
		return err
	}
	s.cut.throttle()
	letGo() // the clock runs when it does: it may not read at all
	s.process.Resume()
	return s.process.Conn.Write(protocol.KindCommand, resume)
}

// interruptAfter interrupts what the program does when ctx ends, and kills it where that
// does not help, until the func that it returns is called.
func (s *says) interruptAfter(ctx context.Context) (answered func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(ended)
		again, kill := time.NewTicker(insisting), time.After(hanging)
		defer again.Stop()
		for {
			s.cut.interrupt()
			select {
			case <-again.C:
			case <-kill:
				s.process.Kill()
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

// answer answers one question. The hatch is not read meanwhile, so a child that ends is
// watched for: nobody waits for the answer then.
func (s *says) answer(ctx context.Context, body []byte) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		select {
		case <-s.process.Done():
			done()
		case <-ctx.Done():
		}
	}()
	return answer(ctx, s.process.Conn, s.desk, body)
}

func answer(ctx context.Context, conn *protocol.Conn, desk RequestHandler, body []byte) error {
	var ask protocol.Request
	if err := unmarshalNumbers(body, &ask); err != nil || len(ask.Types) > 0 && ask.Params == nil {
		return &protocol.IllegalFrame{Why: "an unreadable question"}
	}
	reply := protocol.Answer{ID: ask.ID}
	var err error
	switch ask.What {
	case "query":
		for name, kind := range ask.Types {
			ask.Params[name] = sandbox.TypedParameter{Type: kind, Value: ask.Params[name]}
		}
		rows := conn.RowWriter(ask.ID, ask.Form)
		var total sandbox.QuerySummary
		if total, err = desk.Query(ctx, ask.SQL, ask.Params, rows.WriteBatch); err == nil {
			return rows.End(total.Truncated)
		}
	case "tables":
		reply.Value, err = desk.Tables(ctx)
	case "schema":
		reply.Value, err = desk.Schema(ctx, ask.Table)
	case "history":
		reply.Value, err = desk.History(ctx)
	default:
		return &protocol.IllegalFrame{Why: "an unknown question"}
	}
	if err != nil && !errors.As(err, &reply.Refused) {
		var known *sandbox.Error
		message := "the database could not answer; the service's log says more"
		if errors.As(err, &known) {
			message = known.Detail
		} else if ctx.Err() != nil {
			message = "the run was interrupted"
		}
		reply.Refused = &sandbox.Refusal{Reason: "unavailable", Message: message, Failed: true}
	}
	return conn.Write(protocol.KindAnswer, reply)
}

// keepNote adds a note to the execution, within bounds. What is beyond them is not even
// read, which is work that nobody would be charged for.
func (s *says) keepNote(body []byte) error {
	e := s.e
	if s.notes -= len(body); s.notes < 0 {
		cut(e, "notes", 1)
		return nil
	}
	var n sandbox.Note
	if err := json.Unmarshal(body, &n); err != nil || sandbox.JSONDepth(body) > maxDepth {
		return &protocol.IllegalFrame{Why: "a note that can't be read, or nests too deep"}
	}
	n.Time = time.Now().UTC()
	if n.Name == "" {
		if len(e.DebugInfo.Logs) >= maxNotes {
			cut(e, "logs", 1)
			return nil
		}
		e.DebugInfo.Logs = append(e.DebugInfo.Logs, n)
		s.told(func(live OutputListener) { live.Note(n) })
		return nil
	}
	seen, known := e.DebugInfo.Variables[n.Name]
	if len(seen) >= maxPerName || !known && len(e.DebugInfo.Variables) >= maxInspected {
		cut(e, "variables", 1)
		return nil
	}
	e.DebugInfo.Variables[n.Name] = append(seen, n)
	s.told(func(live OutputListener) { live.Note(n) })
	return nil
}

// keepOutput adds a rich output to the execution, within bounds. It is kept as it
// comes, so a run that is ended has what it had shown.
func (s *says) keepOutput(ctx context.Context, body []byte) error {
	if s.room -= len(body); s.room < 0 || len(s.e.Outputs) >= maxOutputs {
		cut(s.e, "outputs", 1)
		return nil
	}
	var parts struct { // not read further before it is known how many they are
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &parts); err != nil || len(parts.Data) == 0 || parts.Data[0] != '{' {
		return &protocol.IllegalFrame{Why: "an output that can't be read"}
	}
	if sandbox.JSONMemberCount(parts.Data) > maxTypes || sandbox.JSONDepth(body) > maxDepth {
		cut(s.e, "outputs", 1)
		return nil
	}
	var o sandbox.Output
	if err := json.Unmarshal(body, &o); err != nil {
		return &protocol.IllegalFrame{Why: "an output that can't be read"}
	}
	if runes := []rune(o.Summary); len(runes) > maxSummary {
		o.Summary = string(runes[:maxSummary])
	}
	o = s.desk.Show(ctx, o)
	s.e.Outputs = append(s.e.Outputs, o)
	s.told(func(live OutputListener) { live.Output(o) })
	return nil
}

// told tells who listens, if anybody does, after all that was printed before.
func (s *says) told(what func(OutputListener)) {
	if s.live != nil {
		s.catchUp()
		what(s.live)
	}
}

// printer is what a tape tells a listener with.
func printer(live OutputListener, stream string) func([]byte) {
	if live == nil {
		return nil
	}
	return func(text []byte) { live.Print(stream, text) }
}
