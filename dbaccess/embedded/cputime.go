package embedded

import (
	"fmt"
	"os"
	"time"
)

// CPUTime returns the CPU time that the server's process with a pid has used. isKnown is false if the server has no
// such process.
func (s *Server) CPUTime(pid uint32) (used time.Duration, isKnown bool) {
	if !s.isOurs(int(pid)) {
		return 0, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, false
	}
	_, err = fmt.Sscan(string(text), (*int64)(&used)) // the first number: nanoseconds
	return used, err == nil
}
