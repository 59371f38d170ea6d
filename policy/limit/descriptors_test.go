package limit

import (
	"errors"
	"os"
	"testing"
)

func TestDescriptorsKeepAReserve(t *testing.T) {
	t.Parallel()
	var none *Descriptors
	if err := none.Check(1 << 30); err != nil {
		t.Errorf("without a reserve: %v", err)
	}
	d := NewDescriptors(10)
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := d.Check(int(f.Fd())); err != nil {
		t.Errorf("a descriptor below the reserve: %v", err)
	}
	for n, want := range map[int]error{d.end - 1: nil, d.end: ErrNoDescriptors, d.end + 9: ErrNoDescriptors} {
		if err := d.Check(n); !errors.Is(err, want) {
			t.Errorf("descriptor %d: got %v, want %v", n, err, want)
		}
	}
}
