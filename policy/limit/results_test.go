package limit

import (
	"errors"
	"testing"
)

func TestResultsOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	results := NewResults(100)
	a, b, other := results.Open("ann"), results.Open("ann"), results.Open("bob")
	for _, step := range []struct {
		held *Held
		n    int
		want error
	}{
		{a, 60, nil}, {b, 40, nil}, {b, 1, ErrFull}, {other, 100, nil}, {a, -10, nil}, {b, 10, nil}, {b, 1, ErrFull},
	} {
		if err := step.held.Add(step.n); !errors.Is(err, step.want) {
			t.Errorf("%s adds %d: got %v, want %v", step.held.user, step.n, err, step.want)
		}
	}
	a.Close()
	a.Close()
	b.Close()
	other.Close()
	if len(results.held) > 0 {
		t.Errorf("after Close: got %v, want nothing held", results.held)
	}
	if err := (*Results)(nil).Open("ann").Add(1 << 40); err != nil {
		t.Errorf("without a limit: got %v", err)
	}
}
