package history

// scope names the rows that a read is about: those of one user, sandbox or execution. The zero value is all rows.
type scope struct{ user, sandbox, execution string }

func ofUser(user string) scope    { return scope{user: clean(user)} }
func ofSandbox(id string) scope   { return scope{sandbox: clean(id)} }
func ofExecution(id string) scope { return scope{execution: clean(id)} }

// parts returns the scopes with one field each. Those of empty fields are all rows.
func (s scope) parts() [3]scope {
	return [3]scope{{user: s.user}, {sandbox: s.sandbox}, {execution: s.execution}}
}

// scopes knows the last row of each scope that waits to be inserted, so that a read waits only for rows that it is
// about, and not for the rows of another user's flood. A row is known by its number, in the order of the log.
type scopes struct {
	last    map[scope]uint64
	unknown uint64           // the last row whose user is not known
	running map[string]scope // scopes of running executions: rows of their progress have only the execution's id
}

// add adds a row.
func (s *scopes) add(r row, number uint64) {
	if s.last == nil {
		s.last, s.running = map[scope]uint64{}, map[string]scope{}
	}
	of := scope{r.user, r.sandboxID, r.executionID}
	if r.isProgress() {
		known, ok := s.running[r.executionID]
		if !ok {
			s.unknown = number
			return
		}
		of = known
	} else if r.isExecution() {
		if s.running[r.executionID] = of; r.completedAt != nil {
			delete(s.running, r.executionID)
		}
	}
	for _, part := range of.parts() {
		if part != (scope{}) {
			s.last[part] = number
		}
	}
}

// lastOf returns the number of the last row that a read of a scope is about.
func (s *scopes) lastOf(of scope) uint64 { return max(s.last[of], s.unknown) }

// inserted forgets the rows up to a number.
func (s *scopes) inserted(number uint64) {
	for of, last := range s.last {
		if last <= number {
			delete(s.last, of)
		}
	}
}
