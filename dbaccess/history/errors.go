package history

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

var (
	errClosed = errors.New("history is closed")
	// errNotConfirmed marks the error of a write whose caller stopped waiting: the write may still succeed.
	errNotConfirmed = errors.New("PostgreSQL has not confirmed the write")
)

// unavailable turns a lost or refused connection, and the refusal of a read-only server, into FaultUnavailable, which
// tells the caller to try again.
func unavailable(err error) error {
	if !isConnectionError(err) {
		return err
	}
	detail := "the history database does not answer, and nothing runs without history: try again in a moment"
	switch {
	case isReplaced(err):
		detail = "the history database does not confirm that only this service uses it: try again in a moment, or " +
			"ask the operator, who finds the reason in the service's log"
	case isReadOnly(err):
		detail = "the history database is read-only, and nothing runs without history: ask the operator, who " +
			"connects the service to the primary server or ends default_transaction_read_only"
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, RetryAfter: 2, Cause: err, Detail: detail}
}

// isReadOnly reports whether the server is a standby, or its operator has made it or the database read-only.
func isReadOnly(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "25006"
}

// isReplaced reports whether a transaction failed because another node has the database now, or because the database
// has lost this node (node.renew).
func isReplaced(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "GH001" // of require_node
}

func isUnavailable(err error) bool {
	return sandbox.FaultOf(err) == sandbox.FaultUnavailable
}

// isConnectionError reports whether the server or the connection failed, and not the statement. A retry on a new
// connection may succeed.
func isConnectionError(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errNotConfirmed) || errors.Is(err, errClosed) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// SQLSTATE: shutting down or starting up; connection exception; insufficient resources; read-only, which may
		// mean that another server is the primary now; and a replaced node, whose row may return after a promotion.
		return hasClass(pg, "57P", "08", "53", "25006") || isReplaced(err)
	}
	var connect *pgconn.ConnectError
	var network net.Error // includes deadlines
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // pgx exports no error value for a closed connection
}

// isDataError reports whether PostgreSQL refused the values of a row, so that a retry cannot succeed.
func isDataError(err error) bool {
	var pg *pgconn.PgError
	// SQLSTATE: data exception; integrity constraint violation; program limit exceeded.
	return errors.As(err, &pg) && hasClass(pg, "22", "23", "54")
}

func hasClass(err *pgconn.PgError, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(err.Code, prefix) {
			return true
		}
	}
	return false
}

func notFound(noun string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such %s, or it is not yours", noun)
}
