package sandbox

import "time"

// ConnectionStatus is the state or the end of a Connection.
type ConnectionStatus string

// The statuses of a connection.
const (
	ConnectionAllowed ConnectionStatus = "allowed" // the connection was allowed, and has ended
	ConnectionRefused ConnectionStatus = "refused" // the policy does not allow the connection
	ConnectionFailed  ConnectionStatus = "failed"  // the connection was allowed, but could not be made or used
	ConnectionOpen    ConnectionStatus = "open"    // the connection was allowed, and is open
)

// Connection is history's record of one connection that code requested from its sandbox to
// a host. The bytes are those of TCP between the broker and the host: for TLS the encrypted
// stream, for plain HTTP with the headers.
type Connection struct {
	Host          string           `json:"host"` // as the policy compares it: ASCII, lower case
	Port          int              `json:"port"`
	Address       string           `json:"address,omitempty"` // "ip:port" that was connected to
	Status        ConnectionStatus `json:"status"`
	Reason        string           `json:"reason,omitempty"` // why it was refused, failed or cut
	BytesSent     int64            `json:"bytes_sent"`
	BytesReceived int64            `json:"bytes_received"`
	DurationMS    float64          `json:"duration_ms"`
	StartedAt     time.Time        `json:"started_at"`
}
