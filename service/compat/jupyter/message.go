package jupyter

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"glasshouse/sandbox"
)

// protocolVersion is the version of the messages.
const protocolVersion = "5.3"

// v1Protocol is the subprotocol whose messages are binary. Without a subprotocol a message is JSON in a text frame, or
// in a binary frame if it has buffers.
const v1Protocol = "v1.kernel.websocket.jupyter.org"

// timeFormat is the format of times in messages and answers: clients parse the fraction.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// The channels of a message.
const (
	shell   = "shell"
	control = "control"
	iopub   = "iopub"
)

// maxHeaderBytes is the largest header of a request: each answer repeats it.
const maxHeaderBytes = 16 << 10

// message is a request of a client.
type message struct {
	Header  json.RawMessage `json:"header"`
	Content json.RawMessage `json:"content"`
	Channel string          `json:"channel"` // empty: shell
	kind    string          // msg_type
}

// errMalformed is the error for a frame that is no message.
var errMalformed = errors.New("the frame is no message of the Jupyter protocol")

// parseFrame returns the message in a frame. Its buffers are not read: no request uses them.
func parseFrame(frame []byte, isBinary, isV1 bool) (*message, error) {
	m := &message{}
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
	m.kind = header.Kind
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

// reply is a message to clients.
type reply struct {
	channel, kind, id       string
	header, parent, content json.RawMessage
	text, v1                []byte // the forms in which it is sent, once one client needs them
}

// newReply returns a message with this content. parent is the header of the request that it answers; nil: none.
func (k *kernel) newReply(channel, kind string, parent json.RawMessage, content any) *reply {
	if parent == nil {
		parent = json.RawMessage("{}")
	}
	r := &reply{channel: channel, kind: kind, id: rand.Text(), parent: parent}
	r.header = encode(map[string]string{
		"msg_id": r.id, "msg_type": kind, "username": "glasshouse", "session": k.session, "version": protocolVersion,
		"date": time.Now().UTC().Format(timeFormat),
	})
	r.content = encode(content)
	return r
}

// encode returns v as JSON. All that this package encodes has a JSON form.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// frame returns the frame of a message. Only one goroutine may call it at a time.
func (r *reply) frame(isV1 bool) []byte {
	switch {
	case isV1 && r.v1 == nil:
		r.v1 = joinV1([]byte(r.channel), r.header, r.parent, []byte("{}"), r.content)
	case !isV1 && r.text == nil:
		r.text = encode(map[string]any{
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
