package debug_test

import (
	"os"
	"testing"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/service/servicetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

var grace = servicetest.Grace
