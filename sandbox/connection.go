package sandbox

import "time"

// ConnectionStatus says what became of a Connection.
type ConnectionStatus string

// Allowed was made, whatever ended it then; Refused is the policy's no; Failed
// was allowed and could not be made or used. Open is allowed, and goes on.
const (
	ConnectionAllowed ConnectionStatus = "allowed"
	ConnectionRefused ConnectionStatus = "refused"
	ConnectionFailed  ConnectionStatus = "failed"
	ConnectionOpen    ConnectionStatus = "open"
)

// Connection is one connection that code asked for out of its sandbox, as
// history keeps it. Bytes are what passed over TCP beyond the broker: for TLS
// the encrypted stream, for plain HTTP the headers too.
type Connection struct {
	Host          string           `json:"host"` // as the policy compares it: ASCII, lower case
	Port          int              `json:"port"`
	Address       string           `json:"address,omitempty"` // connected to, "ip:port"
	Status        ConnectionStatus `json:"status"`
	Reason        string           `json:"reason,omitempty"` // why it was refused, failed or cut
	BytesSent     int64            `json:"bytes_sent"`
	BytesReceived int64            `json:"bytes_received"`
	DurationMS    float64          `json:"duration_ms"`
	StartedAt     time.Time        `json:"started_at"`
}
