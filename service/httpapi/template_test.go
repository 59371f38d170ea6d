package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// What the context has goes through process, in the templates and in a processor of
// one's own.
func TestProcessorsTakeTheContextsData(t *testing.T) {
	c := user(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct {
		kind, code string
		data       any
		want       string
	}{
		{"text_analyzer", "", "One two. Two words!", `"sentences":2`},
		{"text_analyzer", "", []string{"a text", "another"}, `"texts":2`},
		{"database_connector", "", map[string]any{"query": "SELECT :n::int AS n", "parameters": map[string]any{"n": 7}}, `{"count":1,"rows":[{"n":7}]}`},
		{"", "from processor_pipeline import AsyncProcessor\nclass Own(AsyncProcessor):\n    async def process(self, context):\n        return {'n': len(context.data)}\nawait Own().run(context)", []int{1, 2, 3}, `{"n":3}`},
	} {
		code := x.code
		if x.kind != "" {
			code, _ = c.ok(t, "POST", "/sandbox/"+id+"/templates/processor", map[string]any{"processor_type": x.kind}).get("template_code").(string)
		}
		a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code, "context": map[string]any{"data": x.data}})
		if a.get("status") != "completed" || !strings.Contains(string(mustJSON(t, a.get("result"))), x.want) {
			t.Errorf("%s with %v: %s", x.kind, x.data, a.text)
		}
	}
}
