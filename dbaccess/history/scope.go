package history

import "slices"

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
// about, and not for the rows of another user's flood. A row is known by its number, in the order of the log, and by
// the user whose backlog has it.
type scopes struct {
	last    map[scope]lastRow
	unknown uint64           // the last row whose user is not known; it is in the backlog of the user ""
	running map[string]scope // scopes of running executions: rows of their progress have only the execution's id
	enough  int              // forget looks for old entries of last when there are more
}

// lastRow is the last row of a scope in the backlog of a user.
type lastRow struct {
	user   string
	number uint64
	others []lastRow // in the backlogs of other users, for example of an admin who runs code in a user's sandbox
}

// add adds a row, and returns the user whose backlog gets it.
func (s *scopes) add(r row, number uint64) (user string) {
	if s.last == nil {
		s.last, s.running = map[scope]lastRow{}, map[string]scope{}
	}
	of := scope{r.user, r.sandboxID, r.executionID + r.inputsOf} // one of the ids is ""
	switch {
	case r.isProgress():
		known, ok := s.running[r.executionID]
		if !ok {
			s.unknown = number
			return ""
		}
		of = known
	case r.isExecution():
		if s.running[r.executionID] = of; r.isEnd() {
			delete(s.running, r.executionID)
		}
	}
	for _, part := range of.parts() {
		if part != (scope{}) {
			s.last[part] = s.last[part].with(of.user, number)
		}
	}
	return of.user
}

// with returns l with a later row.
func (l lastRow) with(user string, number uint64) lastRow {
	if l.user == user || l.number == 0 {
		l.user, l.number = user, number
		return l
	}
	others := slices.DeleteFunc(slices.Clone(l.others), func(other lastRow) bool { return other.user == user })
	l.others = append(others, lastRow{user: user, number: number})
	return l
}

// lastOf returns the last rows that a read of a scope is about.
func (s *scopes) lastOf(of scope) []lastRow {
	last := s.last[of]
	return append([]lastRow{{number: s.unknown}, {user: last.user, number: last.number}}, last.others...)
}

// userOf returns the user of a running execution.
func (s *scopes) userOf(execution string) string { return s.running[clean(execution)].user }

// forget forgets scopes without waiting rows, from time to time. isInserted reports whether a row does not wait.
func (s *scopes) forget(isInserted func(lastRow) bool) {
	if len(s.last) <= s.enough {
		return
	}
	waits := func(r lastRow) bool { return !isInserted(r) }
	for of, last := range s.last {
		if !waits(last) && !slices.ContainsFunc(last.others, waits) {
			delete(s.last, of)
		}
	}
	s.enough = 2*len(s.last) + minScopes
}

// minScopes is the number of scopes that forget leaves alone.
const minScopes = 1000
