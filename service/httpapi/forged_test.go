package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// However much of a request is wrong, its answer is short, and soon there.
func TestAThousandErrorsAreToldInFew(t *testing.T) {
	a := user(t, sandbox.RoleAgent).do(t, "POST", "/sandbox/agent/quick-execute", `{"code":"1","files":[`+strings.Repeat(`{},`, 100_000)+`{}]}`)
	isProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "files[0]", "; and 99981 more")
	if len(a.text) > 10_000 {
		t.Errorf("%d bytes", len(a.text))
	}
}

// What says that it stands is stopped, and runs no further while no clock runs.
func TestAForgedStopStands(t *testing.T) {
	c := user(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	opened := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions", map[string]any{"code": `
import os, struct
body = b'{"reason":"step","ids":[],"text":"","step":1}'
os.write(3, struct.pack('>IB', len(body), ord('S')) + body)
while True:
    pass
`})
	c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import time\ntime.sleep(1)"}) // meanwhile
	c.ok(t, "DELETE", "/debug/sessions/"+opened.get("session_id").(string), nil)
	kept := c.ok(t, "GET", "/executions/"+opened.get("execution_id").(string), nil)
	if cpu, _ := kept.get("usage.cpu_ms").(float64); kept.get("status") == "running" || cpu > 200 {
		t.Errorf("%v, with %v ms of CPU", kept.get("status"), cpu)
	}
}

// A function is not shown among the variables, so it is not told as changed either.
func TestWhatIsNotShownHasNotChanged(t *testing.T) {
	d, _ := user(t, sandbox.RoleDeveloper).open(t, map[string]any{"code": "def f():\n    pass\nx = 1\ny = 2", "stop_on_entry": true}, nil)
	for _, want := range []string{"<nil>", "[x]"} {
		if a := d.command(t, "next", nil); fmt.Sprint(a.get("where.changed")) != want {
			t.Errorf("%v is told as changed, not %s", a.get("where.changed"), want)
		}
	}
}
