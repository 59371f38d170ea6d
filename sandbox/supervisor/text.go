package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"glasshouse/sandbox"
)

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func text(format string, args ...any) *string {
	s := fmt.Sprintf(format, args...)
	return &s
}

// cut says in the execution that n bytes or items of what are missing.
func cut(e *sandbox.Execution, what string, n int64) {
	if e.Truncated == nil {
		e.Truncated = map[string]int64{}
	}
	e.Truncated[what] += n
}

// unmarshalNumbers keeps numbers as the digits that they came as.
func unmarshalNumbers(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return dec.Decode(v)
}
