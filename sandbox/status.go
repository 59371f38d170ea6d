package sandbox

import "time"

// HistoryStatus says how history is.
type HistoryStatus struct {
	WaitingRecords int     `json:"waiting_records" doc:"Records that are not yet in PostgreSQL"`
	WaitingBytes   int64   `json:"waiting_bytes"`
	WaitingSeconds float64 `json:"waiting_seconds" doc:"Since the last of them was inserted; below 0.1 in general"`
	DatabaseBytes  int64   `json:"database_bytes"`
	FreeBytes      uint64  `json:"free_bytes" doc:"Free space on the disk of the data folder"`
	Error          string  `json:"error,omitempty" doc:"Why PostgreSQL does not answer"`
}

// ServiceStatus says how a service is.
type ServiceStatus struct {
	StartedAt time.Time         `json:"started_at"`
	Isolation string            `json:"isolation" doc:"The isolation level"`
	Enforced  map[string]string `json:"enforced_by" doc:"The mechanism for each limit, by the limit's config key"`
	Sandboxes Occupancy         `json:"sandboxes" doc:"Live sandboxes"`
	PerUser   int               `json:"sandboxes_per_user" doc:"Maximum number of live sandboxes of one user"`
	Runs      Occupancy         `json:"executions" doc:"Running and waiting executions; max is the number of slots"`
	History   HistoryStatus     `json:"history"`
	Retention HistoryRetention  `json:"retention"`
	InputLog  string            `json:"input_log" enum:"rows,hashes,off" doc:"What is kept of the rows that code has read"`
	Python    []Environment     `json:"environments"`
	Pools     []WarmPool        `json:"warm_pools" doc:"The warm interpreters of the environments"`
}

// WarmPool is an interpreter that has imported packages, with the guests that were forked from it.
type WarmPool struct {
	Environment string    `json:"environment"`
	Name        string    `json:"name"`
	Modules     []string  `json:"modules" doc:"The modules that it has imported"`
	IsWarm      bool      `json:"warm" doc:"It runs; all but the default environment's start when code needs them"`
	Waiting     Occupancy `json:"waiting" doc:"Guests that wait for code; max is their number when the pool is full"`
	InUse       int       `json:"in_use" doc:"Guests of sandboxes and executions"`
	Problem     string    `json:"problem,omitempty" doc:"Why no further guest can be made"`
}

// HistoryRetention says which limits history has, and what was deleted because of them.
type HistoryRetention struct {
	MaxAgeSeconds float64    `json:"max_age_seconds" doc:"Of executions; 0: no limit"`
	MaxBytes      int64      `json:"max_bytes" doc:"Of all records and recordings; 0: no limit"`
	IsDeleting    bool       `json:"deleting" doc:"Old executions are being deleted now"`
	Deleted       int64      `json:"deleted_executions" doc:"Since the service started"`
	CheckedAt     *time.Time `json:"checked_at,omitempty" doc:"When the limits were last applied to all of history"`
	Error         string     `json:"error,omitempty" doc:"Why the last attempt did not delete everything"`
}

// Occupancy is a number and its limit.
type Occupancy struct {
	Now int `json:"now"`
	Max int `json:"max"`
}
