// Package wire has the messages of the Jupyter protocol, and their forms on a WebSocket.
//
//	request, err := wire.Parse(frame, isBinary, isV1)
//	answer := wire.NewReply(session, request.Channel, request.ReplyKind(), request.Header, content)
//	frame = answer.Frame(isV1)
package wire

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"glasshouse/sandbox"
)

// ProtocolVersion is the version of the messages.
const ProtocolVersion = "5.3"

// V1Protocol is the subprotocol whose messages are binary. Without a subprotocol a message is JSON in a text frame, or
// in a binary frame if it has buffers.
const V1Protocol = "v1.kernel.websocket.jupyter.org"

// TimeFormat is the format of times in messages and answers: clients parse the fraction.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

// Object is the content of a message.
type Object = map[string]any

// The channels of a message.
const (
	Shell   = "shell"
	Control = "control"
	IOPub   = "iopub"
)

// maxHeaderBytes is the largest header of a request: each answer repeats it.
const maxHeaderBytes = 16 << 10

// Message is a request of a client.
type Message struct {
	Header  json.RawMessage `json:"header"`
	Content json.RawMessage `json:"content"`
	Channel string          `json:"channel"` // empty: shell
	Kind    string          `json:"-"`       // msg_type
}

// ReplyKind returns the type of the message that answers a request.
func (m *Message) ReplyKind() string { return strings.TrimSuffix(m.Kind, "_request") + "_reply" }

// DecodeContent decodes the content of a request into v. It returns FaultInvalid for a content of another form.
func (m *Message) DecodeContent(v any) error {
	if err := sandbox.UnmarshalIntegers(m.Content, v); err != nil {
		return sandbox.Errorf(sandbox.FaultInvalid, "the content of the request cannot be read: %s", err)
	}
	return nil
}

// errMalformed is the error for a frame that is not a message.
var errMalformed = errors.New("the frame is not a message of the Jupyter protocol")

// Parse returns the message in a frame. Its buffers are not read: no request uses them.
func Parse(frame []byte, isBinary, isV1 bool) (*Message, error) {
	m := &Message{}
	switch {
	case isV1:
		parts, err := splitV1(frame)
		if err != nil {
			return nil, err
		}
		m.Channel, m.Header, m.Content = string(parts[0]), parts[1], parts[4]
	case isBinary:
		text, err := firstPart(frame)
		if err != nil {
			return nil, err
		}
		frame = text
		fallthrough
	default:
		if err := json.Unmarshal(frame, m); err != nil {
			return nil, errMalformed
		}
	}
	var header struct {
		Kind string `json:"msg_type"`
	}
	if len(m.Header) > maxHeaderBytes || sandbox.CheckJSON(m.Header) != nil ||
		json.Unmarshal(m.Header, &header) != nil || header.Kind == "" {
		return nil, errMalformed
	}
	m.Kind = header.Kind
	return m, nil
}

// firstPart returns the JSON of a binary frame: big-endian numbers of 32 bits say how many parts the frame has and
// where each begins. The others are buffers.
func firstPart(frame []byte) ([]byte, error) {
	number := func(n int) uint32 { return binary.BigEndian.Uint32(frame[4*n:]) }
	if len(frame) < 8 {
		return nil, errMalformed
	}
	parts, end := uint64(number(0)), uint64(len(frame))
	if parts == 0 || 4*(parts+1) > end {
		return nil, errMalformed
	}
	begin := uint64(number(1))
	if parts > 1 {
		end = uint64(number(2))
	}
	if begin > end || end > uint64(len(frame)) {
		return nil, errMalformed
	}
	return frame[begin:end], nil
}

// splitV1 returns the channel, header, parent header, metadata and content of a frame of the subprotocol v1, and its
// buffers: little-endian numbers of 64 bits say how many offsets the frame has, and where each part begins.
func splitV1(frame []byte) ([][]byte, error) {
	if len(frame) < 8 {
		return nil, errMalformed
	}
	count := binary.LittleEndian.Uint64(frame)
	if count < 6 || count > uint64(len(frame)/8)-1 {
		return nil, errMalformed
	}
	parts := make([][]byte, count-1)
	for n := range parts {
		begin, end := binary.LittleEndian.Uint64(frame[8*(n+1):]), binary.LittleEndian.Uint64(frame[8*(n+2):])
		if begin > end || end > uint64(len(frame)) {
			return nil, errMalformed
		}
		parts[n] = frame[begin:end]
	}
	return parts, nil
}

// Reply is a message to clients.
type Reply struct {
	channel, kind, id       string
	header, parent, content json.RawMessage
	text, v1                []byte // the forms in which it is sent, once one client needs them
}

// NewReply returns a message of a session with this content. parent is the header of the request that it answers;
// nil: none.
func NewReply(session, channel, kind string, parent json.RawMessage, content any) *Reply {
	if parent == nil {
		parent = json.RawMessage("{}")
	}
	r := &Reply{channel: channel, kind: kind, id: rand.Text(), parent: parent}
	r.header = Encode(map[string]string{
		"msg_id": r.id, "msg_type": kind, "username": "glasshouse", "session": session, "version": ProtocolVersion,
		"date": time.Now().UTC().Format(TimeFormat),
	})
	r.content = Encode(content)
	return r
}

// Encode returns v, which must have a JSON form, as JSON.
func Encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Frame returns the frame of a message. Only one goroutine may call it at a time.
func (r *Reply) Frame(isV1 bool) []byte {
	switch {
	case isV1 && r.v1 == nil:
		r.v1 = joinV1([]byte(r.channel), r.header, r.parent, []byte("{}"), r.content)
	case !isV1 && r.text == nil:
		r.text = Encode(map[string]any{
			"header": r.header, "msg_id": r.id, "msg_type": r.kind, "parent_header": r.parent, "metadata": struct{}{},
			"content": r.content, "buffers": []string{}, "channel": r.channel,
		})
	}
	if isV1 {
		return r.v1
	}
	return r.text
}

// joinV1 undoes splitV1.
func joinV1(parts ...[]byte) []byte {
	at := 8 * (len(parts) + 2)
	frame := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)+1))
	frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
	for _, part := range parts {
		at += len(part)
		frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
	}
	for _, part := range parts {
		frame = append(frame, part...)
	}
	return frame
}
