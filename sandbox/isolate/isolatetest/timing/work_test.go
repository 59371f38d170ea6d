package timing

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/isolatetest"
	"glasshouse/sandbox/supervisor"
)

// cpuTime returns the CPU time that this process, which has the supervisor, has used.
func cpuTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // never fails
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

const sendFrames = `
import os, struct, threading
def frame(kind, body): return struct.pack(">IB", len(body), ord(kind)) + body
answers = 0
def read_answers():
    global answers
    data = b""
    while True:
        data += os.read(3, 65536)
        while len(data) >= 5 and len(data) >= 5 + (size := int.from_bytes(data[:4], "big")):
            answers, data = answers + 1, data[5 + size:]
threading.Thread(target=read_answers, daemon=True).start()
`

// A flood of large frames costs the service about as much CPU time as its sender, besides a burst. Before its work was
// charged, an ask of 900 kB cost the service 30 times the CPU time of its sender.
func TestFramesAreChargedByBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	programs := map[string]string{
		"asks": sendFrames + `
ask = frame("A", b'{"id":1,"what":"query","sql":"' + b"x" * 900_000 + b'"}')
while True: os.write(3, ask)`,
		"parameters": sendFrames + `
ask = frame("A", b'{"id":1,"what":"query","sql":"SELECT 1","params":{"x":[' + b"1," * 450_000 + b"1]}}")
while True: os.write(3, ask)`,
		"notes":  "note = 'x' * 200_000\nwhile True: debug(note)",
		"output": "import os\ntext = b'x' * 65536\nwhile True: os.write(1, text)",
	}
	for name, code := range programs {
		t.Run(name, func(t *testing.T) {
			s := isolatetest.NewSession(t, isolatetest.Shared(t), func(p *policy.Policy) { p.MaxExecutionTime = 4 })
			before := cpuTime()
			e := isolatetest.Run(t, s, code)
			service, guest := cpuTime()-before, time.Duration(e.Usage.CPUMS*float64(time.Millisecond))
			t.Logf("%s in %.1f s: %s of the service, %s of the guest", e.Status, e.Usage.WallMS/1000, service, guest)
			const burst = 1200 * time.Millisecond // of the account, its floor, and the garbage collector
			if e.Status != sandbox.StatusTimeout || service > burst+guest*3/2 {
				t.Errorf(
					"got %s and %s of CPU time in the service for %s in the guest, want timeout and at most "+
						"1.5 times + %s",
					e.Status,
					service,
					guest,
					burst,
				)
			}
		})
	}
}

// A flood is slowed down, and loses nothing.
func TestSlowedFramesAreAllAnswered(t *testing.T) {
	const asks = 80
	s := isolatetest.NewSession(t, isolatetest.Shared(t), func(p *policy.Policy) { p.MaxExecutionTime = 60 })
	e, err := isolatetest.RunWith(context.Background(), s, sendFrames+fmt.Sprintf(`
import time
ask = frame("A", b'{"id":1,"what":"query","sql":"' + b"x" * 900_000 + b'"}')
for _ in range(%[1]d): os.write(3, ask)
while answers < %[1]d: time.sleep(0.01)
print("answered")`, asks), nil, isolatetest.Handler{})
	isolatetest.Must(t, err)
	if e.Stdout != "answered\n" {
		t.Errorf("got %s, %q and %s; want %d answers", e.Status, e.Stdout, isolatetest.Why(e), asks)
	}
}

// resuming is a debugger that decodes what the guest sends, and lets the program run on at each stop.
type resuming struct{ stops *int }

func (resuming) Begin(func()) json.RawMessage { return json.RawMessage(`{"entry": false}`) }
func (resuming) Records([]byte, uint64) error { return nil }
func (resuming) Logged(body []byte)           { _ = decodeStop(body) }
func (r resuming) Stopped(_ context.Context, body []byte, _ supervisor.Command) (any, error) {
	*r.stops++
	return map[string]string{"do": "resume"}, decodeStop(body)
}

func decodeStop(body []byte) error {
	var stop struct {
		Reason, Text string
		IDs          []int
	}
	return json.Unmarshal(body, &stop)
}

// Stops and log points that the guest forges cost the service about as much CPU time as the guest, besides a burst.
func TestForgedStopsAreCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	frames := map[string]string{
		"small": `frame("S", b'{"reason":"attention"}') * 100`,
		"texts": `frame("S", b'{"reason":"attention","text":"' + b"x" * 900_000 + b'"}')`,
		"lists": `frame("S", b'{"reason":"attention","ids":[' + b"1," * 450_000 + b'1]}')`,
		"logs":  `frame("G", b'{"ids":[' + b"1," * 450_000 + b'1]}')`,
	}
	for name, code := range frames {
		t.Run(name, func(t *testing.T) {
			s := isolatetest.NewSession(t, isolatetest.Shared(t), func(p *policy.Policy) { p.MaxExecutionTime = 4 })
			stops := 0
			before := cpuTime()
			e, err := s.Run(context.Background(), "e", sandbox.Request{
				Code: sendFrames + "forged = " + code + `
while True:
    rest = memoryview(forged) # a stop may cut a write short
    while rest: rest = rest[os.write(3, rest):]`,
			}, supervisor.Callbacks{Debugger: resuming{&stops}})
			isolatetest.Must(t, err)
			service, guest := cpuTime()-before, time.Duration(e.Usage.CPUMS*float64(time.Millisecond))
			t.Logf("%s in %.1f s with %d stops: %s of the service, %s of the guest",
				e.Status, e.Usage.WallMS/1000, stops, service, guest)
			const burst = 3 * time.Second // one of the account; the CPU time of the rest doubles on a busy machine
			if e.Status != sandbox.StatusTimeout || service > burst+guest*3/2 {
				t.Errorf("got %s and %s of CPU time in the service for %s in the guest, want timeout and at most "+
					"1.5 times + %s", e.Status, service, guest, burst)
			}
		})
	}
}
