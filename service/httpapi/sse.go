package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

const (
	// eventTimeout limits the time in which a client reads written events. A client that stops reading
	// must not hold its run, and the run's slot, for ever.
	eventTimeout = 5 * time.Second
	// heartbeatInterval is the time between two comments in an idle stream, so that proxies do not close it.
	heartbeatInterval = 15 * time.Second
)

// eventSchema describes one event of a stream. data says what the text of its data is.
func eventSchema(data string) *huma.MediaType {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.MediaType{Schema: &huma.Schema{
		Type: huma.TypeObject, Description: "One of the server-sent events", AdditionalProperties: true,
		Required: []string{"data"}, Properties: map[string]*huma.Schema{
			"data": {Type: huma.TypeString, Description: data}, "event": text, "id": text,
		},
	}}
}

// eventStream writes server-sent events. The response begins with the first write, so that a
// handler can still answer with an error before it.
type eventStream struct {
	g       *gin.Context
	control *http.ResponseController
	buffer  *bufio.Writer
	begun   bool
}

func newEventStream(g *gin.Context) *eventStream {
	control, buffer := http.NewResponseController(g.Writer), bufio.NewWriterSize(g.Writer, 32<<10)
	return &eventStream{g: g, control: control, buffer: buffer}
}

// close removes the write deadline: the connection may serve other requests.
func (s *eventStream) close() { _ = s.control.SetWriteDeadline(time.Time{}) }

func (s *eventStream) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.g.Header("Content-Type", "text/event-stream")
	s.g.Header("Cache-Control", "no-cache")
	s.g.Header("X-Accel-Buffering", "no") // nginx buffers responses otherwise
	s.g.Status(http.StatusOK)
}

// event buffers an event with an id, a name and data as JSON on one line. An empty id or name is left out.
func (s *eventStream) event(id, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var fields []byte
	if id != "" {
		fields = append(append(append(fields, "id: "...), id...), '\n')
	}
	if name != "" {
		fields = append(append(append(fields, "event: "...), name...), '\n')
	}
	fields = append(append(fields, "data: "...), text...)
	return s.write(append(fields, "\n\n"...))
}

// text buffers lines that are not JSON events: comments, retry times.
func (s *eventStream) text(lines string) error { return s.write([]byte(lines + "\n\n")) }

// problem ends the stream with an event error, whose data is the problem for err. It returns the problem.
func (s *eventStream) problem(err error) *Problem {
	p, _ := toProblem(err, infoFrom(s.g.Request.Context()).id)
	if s.event("", "error", p) == nil {
		_ = s.flush() // the stream ends either way
	}
	return p
}

func (s *eventStream) write(text []byte) error {
	s.begin()
	if err := s.control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	_, err := s.buffer.Write(text)
	return err
}

// flush sends what is buffered.
func (s *eventStream) flush() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	if err := s.buffer.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}
