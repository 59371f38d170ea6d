package tracing

import "go.opentelemetry.io/otel/attribute"

// The names of attributes. Those of OpenTelemetry's semantic conventions change from time to time, so all names stand
// here. The conventions for databases (db.*), servers and errors are stable.
const (
	keyDatabaseSystem = attribute.Key("db.system.name")
	keyDatabase       = attribute.Key("db.namespace")
	keyReturnedRows   = attribute.Key("db.response.returned_rows")
	keyErrorType      = attribute.Key("error.type")
	keyServerAddress  = attribute.Key("server.address")
	keyServerPort     = attribute.Key("server.port")
	keyUser           = attribute.Key("user.id")
	keyServiceName    = attribute.Key("service.name")
	keyServiceVersion = attribute.Key("service.version")

	keyExecution = attribute.Key("glasshouse.execution.id")
	keySandbox   = attribute.Key("glasshouse.sandbox.id")
	keyKind      = attribute.Key("glasshouse.execution.kind")
	keyStatus    = attribute.Key("glasshouse.status") // of an execution, a statement or a connection
	keyEndedBy   = attribute.Key("glasshouse.ended_by")
	keyPool      = attribute.Key("glasshouse.pool") // "hit" or "miss"
	keySent      = attribute.Key("glasshouse.bytes_sent")
	keyReceived  = attribute.Key("glasshouse.bytes_received")

	// How many statements and connections have no span; see maxSpans.
	keyOmittedQueries     = attribute.Key("glasshouse.omitted.queries")
	keyOmittedConnections = attribute.Key("glasshouse.omitted.connections")
)

// The names of spans. That of the whole execution is spanExecution and its kind.
const (
	spanExecution  = "execution "
	spanQueue      = "queue"
	spanBegin      = "history begin"
	spanFork       = "fork"
	spanCompile    = "compile"
	spanRun        = "run"
	spanQuery      = "query"
	spanConnection = "connection"
	spanFinish     = "history finish"
)
