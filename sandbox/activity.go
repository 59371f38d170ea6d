package sandbox

import "time"

// Activity is what executions did in a time, for charts.
type Activity struct {
	Since time.Time      `json:"since" doc:"The beginning of the first hour"`
	Hours []HourActivity `json:"hours" doc:"Hours without executions are missing"`
	Users []UserActivity `json:"users" doc:"The 20 with the most CPU time"`
	Keys  []KeyCost      `json:"keys" doc:"CPU time by key and day"`
}

// Totals are sums over executions that began in a time.
type Totals struct {
	Executions int64   `json:"executions"`
	Failed     int64   `json:"failed" doc:"Failed, killed, or ended by a limit"`
	RowsRead   int64   `json:"rows_read"`
	CPUMS      float64 `json:"cpu_ms"`
}

// HourActivity sums up an hour, in UTC.
type HourActivity struct {
	Hour time.Time `json:"hour"`
	Totals
}

// UserActivity sums up the executions of a user.
type UserActivity struct {
	User string `json:"user_id"`
	Totals
}

// KeyCost is the CPU time that a key, and those that were created with it, used on a day.
type KeyCost struct {
	KeyID string `json:"key_id"`
	Name  string `json:"name" doc:"Empty if the key is deleted"`
	User  string `json:"user_id"`
	Day   string `json:"day" doc:"Such as 2026-01-31, in UTC"`
	CPUMS int64  `json:"cpu_ms"`
}

// ActivityFilter selects executions for Activity.
type ActivityFilter struct {
	User   string // "": all
	Since  time.Time
	IsWork bool // without replays and explanations; sums by key have them
}
