package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The context's data is passed to process, in the templates and in the user's own processors.
func TestProcessorsReceiveContextData(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct {
		kind, code string
		data       any
		want       string
	}{
		{"text_analyzer", "", "One two. Two words!", `"sentences":2`},
		{"text_analyzer", "", []string{"a text", "another"}, `"texts":2`},
		{"database_connector", "", map[string]any{"query": "SELECT :n::int AS n", "parameters": map[string]any{"n": 7}},
			`{"count":1,"rows":[{"n":7}]}`},
		{"data_processor", "", []int{1, 2}, `{"data":[1,2],"processed":true}`},
		{"",
			"from processor_pipeline import AsyncProcessor\nclass Own(AsyncProcessor):\n    async def process(self, data):\n        return {'n': len(data)}", []int{1, 2, 3}, `{"n":3}`},
		{"",
			"from processor_pipeline import AsyncProcessor\nclass Own(AsyncProcessor):\n    async def process(self, context):\n        return {'n': len(context.data)}\nawait Own().run(context)", []int{1, 2, 3}, `{"n":3}`},
	} {
		code := x.code
		if x.kind != "" {
			code, _ = c.ok(t, "POST", "/sandbox/"+id+"/templates/processor",
				map[string]any{"processor_type": x.kind}).get("template_code").(string)
		}
		a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code,
			"context": map[string]any{"data": x.data}})
		if a.get("status") != "completed" || !strings.Contains(string(mustJSON(t, a.get("result"))), x.want) {
			t.Errorf("%s with %v: got %s", x.kind, x.data, a.text)
		}
	}
}

// A template can be filled in at its marked line, and its class can be sent alone; both return what process returns.
func TestFilledInTemplatesReturnTheirResult(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	const mark = "        # Add your transformation logic here\n"
	rows := []map[string]any{{"n": 5}, {"n": 6}}
	children := map[string]any{
		"query": "SELECT name FROM categories WHERE parent_id = :id ORDER BY 1", "parameters": map[string]any{"id": 4},
	}
	for _, x := range []struct {
		kind, fill string
		data       any
		want       string
	}{
		{"data_processor", `return {"rows": len(data), "first": data[0]["n"]}`, rows, `{"first":5,"rows":2}`},
		{"data_processor", `data = [row["n"] + 1 for row in data]`, rows, `{"data":[6,7],"processed":true}`},
		{"text_analyzer", `return {"longest": max(words, key=len), "texts": len(texts)}`,
			[]string{"a text", "another one"}, `{"longest":"another","texts":2}`},
		{"database_connector", `return {"names": [row["name"] for row in rows]}`,
			children, `{"names":["Databases","Operations"]}`},
	} {
		template := c.ok(t, "POST", "/sandbox/"+id+"/templates/processor", map[string]any{"processor_type": x.kind})
		code, _ := template.get("template_code").(string)
		if strings.Count(code, mark) != 1 || !strings.Contains(compactJSON(template.get("instructions")),
			strings.TrimSpace(mark)) {
			t.Fatalf("%s: got %s, want one marked line", x.kind, template.text)
		}
		filled := strings.Replace(code, mark, "        "+x.fill+"\n", 1)
		alone := filled[:strings.LastIndex(filled, "\n\n\n")]
		for _, code := range []string{filled, alone} {
			a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code,
				"context": map[string]any{"data": x.data}})
			if got := compactJSON(a.get("result")); got != x.want {
				t.Errorf("%s: got %s, want %s: %s", x.kind, got, x.want, a.text)
			}
		}
	}
}
