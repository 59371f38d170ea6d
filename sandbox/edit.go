package sandbox

import "time"

// Edit is a change that a person made to a stopped program in the debugger, or code that they ran in it. The service
// records it; the program cannot forge it.
type Edit struct {
	Number   uint64       `json:"number"` // of the execution, from 1; numbers of edits without effect are missing
	Step     int          `json:"step" doc:"The step at which the program was stopped; its line ran with the new value"`
	Line     int64        `json:"line_number"`
	Function string       `json:"function,omitempty"`
	Code     string       `json:"code" doc:"The assignment or the code, as the person wrote it"`
	Changes  []EditChange `json:"changes" doc:"Variables that it changed, also in place; at most 20"`
	User     string       `json:"user_id"`
	Key      string       `json:"key,omitempty" doc:"The name of the person's key"`
	Time     time.Time    `json:"timestamp"`
}

// EditChange is a variable after an Edit.
type EditChange struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Type  string `json:"type,omitempty"`
}

// By returns the user and the name of the key, for texts.
func (e Edit) By() string {
	if e.Key == "" || e.Key == e.User {
		return e.User
	}
	return e.User + " (key " + e.Key + ")"
}
