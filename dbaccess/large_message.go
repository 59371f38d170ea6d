package dbaccess

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// largeMessage is the size of the body of a message from which it counts as memory of its user. Smaller ones are
// bounded by the number of connections.
const largeMessage = 1 << 20

// readBytes is how much is read of a connection at a time. The server sends pieces of 8 KiB; reading several of them at
// once saves most of the system calls.
const readBytes = 64 << 10

// messageReader reads the messages of a server, and tells the size of each large one before the memory for its body is
// taken.
type messageReader struct {
	from    io.Reader
	onLarge func(size int) error // its error ends the connection; nil: sizes do not matter

	header [5]byte // type and length of a message
	have   int     // bytes of header
	body   int     // bytes of the message that are still to come
	err    error   // of onLarge
}

const messageReaderKey = "glasshouse: messages" // in the custom data of a connection

// countMessages makes a new connection read through a messageReader.
func countMessages(_ context.Context, config *pgx.ConnConfig) error {
	var reader *messageReader
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		reader = &messageReader{from: bufio.NewReaderSize(r, readBytes)}
		return pgproto3.NewFrontend(reader, w)
	}
	config.AfterConnect = func(_ context.Context, pg *pgconn.PgConn) error {
		pg.CustomData()[messageReaderKey] = reader
		return nil
	}
	return nil
}

// Read reads a part of the messages.
func (m *messageReader) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.from.Read(p)
	if m.follow(p[:n]); m.err != nil {
		return 0, m.err
	}
	return n, err
}

// follow finds the beginnings of messages in the next bytes of the connection.
func (m *messageReader) follow(b []byte) {
	for len(b) > 0 && m.err == nil {
		if m.body > 0 {
			n := min(m.body, len(b))
			m.body, b = m.body-n, b[n:]
			continue
		}
		n := copy(m.header[m.have:], b)
		m.have, b = m.have+n, b[n:]
		if m.have < len(m.header) {
			return
		}
		m.have = 0
		const lengthBytes = 4 // the length counts itself
		m.body = max(0, int(int32(binary.BigEndian.Uint32(m.header[1:])))-lengthBytes)
		if m.body >= largeMessage && m.onLarge != nil {
			m.err = m.onLarge(m.body)
		}
	}
}

// holdMessages makes the large messages of a statement count as memory of its user, one at a time, until the returned
// function is called. Messages of more than maxBody bytes are not read.
func holdMessages(pg *pgconn.PgConn, held *limit.Held, maxBody int) (stop func()) {
	reader, ok := pg.CustomData()[messageReaderKey].(*messageReader)
	if !ok {
		return func() {}
	}
	last := 0
	reader.onLarge = func(size int) error {
		if size > maxBody {
			return nil
		}
		if err := held.Add(size - last); err != nil {
			return err
		}
		last = size
		return nil
	}
	return func() { reader.onLarge = nil }
}

// tooMuchHeld returns FaultLimit in place of limit.ErrFull, which says that the results of a user take too much memory.
func tooMuchHeld(results *limit.Results, err error) error {
	if !errors.Is(err, limit.ErrFull) {
		return err
	}
	return &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 2,
		Detail: fmt.Sprintf("your results would take more than %d MiB of the service's memory at a time: read the "+
			"answers that wait, select fewer or shorter values, or run fewer statements at a time, then retry",
			results.Max()>>20),
	}
}
