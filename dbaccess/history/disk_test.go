package history

import (
	"errors"
	"testing"

	"glasshouse/sandbox"
)

func TestNothingBeginsOnAFullDisk(t *testing.T) {
	d := disk{folder: t.TempDir(), least: 1}
	if err := d.room(); err != nil {
		t.Error(err)
	}
	d.least = 1 << 62
	var full *sandbox.Error
	if err := d.room(); !errors.As(err, &full) || full.Fault != sandbox.FaultUnavailable {
		t.Errorf("%v", err)
	}
}
