package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Addresses and ids of objects are not compared, and everything else is.
func TestIdentifiersAreNotCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		was, is string
		isEqual bool
	}{
		{"<f at 0x7fb479194c10>", "<f at 0x7f3cd39960d0>", true},
		{"Generator(PCG64) at 0x7F79BB1D8200", "Generator(PCG64) at 0x7F5662AD18C0", true},
		{"140546259234688", "139651676397376", true},
		{"f353f238-ec3a-11f1-868d-43840630edb2", "f353f239-ec3a-11f1-a83b-f92b56ff7072", true},
		{"52bcf22a-eebc-496d-ba77-d3b96c4b8a1c", "14792460-e1be-4604-8dab-ed147ac079b9", false},
		{"0x10", "0x11", false},
		{"141546259234688", "141546259234689", false},
		{"1404.5", "1404.6", false},
	} {
		var list comparison
		list.text("stdout", c.was, c.is)
		if (len(list.list) == 0) != c.isEqual {
			t.Errorf("%q and %q: got the differences %v, want equal %v", c.was, c.is, list.list, c.isEqual)
		}
	}
}

// A difference names the cell of a table, the item of a list and the line of a text.
func TestDifferencesNameTheirPlace(t *testing.T) {
	t.Parallel()
	of := func(result, stdout string) *sandbox.Execution {
		return &sandbox.Execution{Status: sandbox.StatusCompleted, Result: json.RawMessage(result), Stdout: stdout}
	}
	list := compareExecutions(of(`[{"a":1,"b":"x"},{"a":2}]`, "one\ntwo\n"),
		of(`[{"a":1,"b":"y"},{"a":2},{}]`, "one\n2\n"), nil)
	got := fmt.Sprint(list)
	for _, want := range []string{"{result[0].b 0 x y}", "{result (number of items) 0 2 3}", "{stdout 2 two 2}"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(list) != 3 {
		t.Errorf("got %d differences, want 3", len(list))
	}
	large := "[" + strings.Repeat("1,", 10_000) + "1]"
	other := strings.ReplaceAll(large, "1", "2")
	if n := len(compareExecutions(of(large, ""), of(other, ""), nil)); n > 2*maxDifferences {
		t.Errorf("got %d differences of a large list, want few", n)
	}
}
