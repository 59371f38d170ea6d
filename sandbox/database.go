package sandbox

// DefaultDatabase is the name of the database that statements could not name before databases had names: that of the
// setting --knowledge-url, or the embedded demo.
const DefaultDatabase = "knowledge"

// MaxDatabaseName is the maximum length of a database's name, in characters.
const MaxDatabaseName = 63

// DatabaseStatus says how a database is that statements can name.
type DatabaseStatus struct {
	Name          string `json:"name"`
	IsDefault     bool   `json:"default" doc:"Statements that name no database go to it"`
	Status        string `json:"status" enum:"ready,unavailable"`
	ServerVersion string `json:"server_version,omitempty" doc:"The version of its PostgreSQL"`
	Problem       string `json:"problem,omitempty" doc:"Why it is unavailable"`
}

// The statuses of a database.
const (
	DatabaseReady       = "ready"
	DatabaseUnavailable = "unavailable"
)
