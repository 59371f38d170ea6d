package httpapi_test

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/debug"
	"glasshouse/service/httpapi"
	"glasshouse/service/live"
	"glasshouse/service/mcpapi"
	"glasshouse/service/records"
	"glasshouse/service/run"
	"glasshouse/service/write"
)

// servicesConfig configures the services that an API needs. The clock and the log are those of all of them.
type servicesConfig struct {
	access    access.Config
	records   records.Config
	live      live.Config
	runs      run.Config
	databases []database.Database
	debug     debug.Config
	writes    write.History
	clock     func() time.Time // nil: the machine's clock
	log       *logrus.Logger
}

// services are the services that an API needs.
type services struct {
	access    *access.Service
	records   *records.Service
	live      *live.Service
	runs      *run.Service
	databases *database.Service
	writes    *write.Service
	debug     *debug.Service
}

// newServices starts services. The caller calls drain and close.
func newServices(c servicesConfig) *services {
	s := &services{}
	c.access.Clock, c.access.Log, c.access.Databases = c.clock, c.log, nil
	for _, d := range c.databases {
		c.access.Databases = append(c.access.Databases, d.Name)
	}
	s.access = access.New(c.access)
	c.records.Clock, c.records.Log, c.records.Access = c.clock, c.log, s.access
	s.records = records.New(c.records)
	c.live.Clock, c.live.Log, c.live.Access, c.live.Records = c.clock, c.log, s.access, s.records
	s.live = live.New(c.live)
	c.runs.Clock, c.runs.Log, c.runs.Access, c.runs.Records = c.clock, c.log, s.access, s.records
	s.databases = database.New(database.Config{Access: s.access, List: c.databases})
	c.runs.Live, c.runs.Databases = s.live, s.databases
	s.runs = run.New(c.runs)
	s.writes = write.New(write.Config{
		Access: s.access, Databases: s.databases, Runs: s.runs, History: c.writes, Clock: c.clock,
	})
	c.debug.Clock, c.debug.Access, c.debug.Records, c.debug.Runs = c.clock, s.access, s.records, s.runs
	c.debug.Live = s.live
	s.debug = debug.New(c.debug)
	s.records.Start(s.live, s.runs, s.runs, s.debug)
	return s
}

// api returns the configuration of an API.
func (s *services) api(log *logrus.Logger) httpapi.Config {
	return httpapi.Config{
		Live: s.live, Runs: s.runs, Databases: s.databases, Writes: s.writes, Records: s.records, Debug: s.debug,
		Access: s.access, Log: log, Version: "test",
	}
}

// mcp returns an MCP server.
func (s *services) mcp(log *logrus.Logger) *mcpapi.Server {
	return mcpapi.New(mcpapi.Config{
		Live: s.live, Runs: s.runs, Databases: s.databases, Records: s.records, Debug: s.debug, Log: log,
		Version: "test",
	})
}

// drain ends what runs. When ctx ends, it is cancelled.
func (s *services) drain(ctx context.Context) {
	s.debug.Close()
	s.runs.Drain(ctx)
}

// close ends the services after drain.
func (s *services) close() {
	s.records.Close()
	s.access.Close()
}
