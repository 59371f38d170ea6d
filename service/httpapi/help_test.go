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
	for kind, x := range map[string]struct{ fill, want string }{
		"data_processor": {`return {"rows": len(data), "first": data[0]["n"]}`, `{"first":5,"rows":2}`},
		"text_analyzer": {`return {"longest": max(words, key=len), "texts": len(texts)}`,
			`{"longest":"another","texts":2}`},
		"database_connector": {`return {"names": [row["name"] for row in rows]}`,
			`{"names":["Databases","Operations"]}`},
	} {
		template := c.ok(t, "POST", "/sandbox/"+id+"/templates/processor", map[string]any{"processor_type": kind})
		code, _ := template.get("template_code").(string)
		if strings.Count(code, mark) != 1 || !strings.Contains(compactJSON(template.get("instructions")),
			strings.TrimSpace(mark)) {
			t.Fatalf("%s: got %s, want one marked line", kind, template.text)
		}
		var data any = []map[string]any{{"n": 5}, {"n": 6}}
		switch kind {
		case "text_analyzer":
			data = []string{"a text", "another one"}
		case "database_connector":
			data = map[string]any{"query": "SELECT name FROM categories WHERE parent_id = :id ORDER BY 1",
				"parameters": map[string]any{"id": 4}}
		}
		filled := strings.Replace(code, mark, "        "+x.fill+"\n", 1)
		alone := filled[:strings.LastIndex(filled, "\n\n\n")]
		for _, code := range []string{filled, alone} {
			a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code,
				"context": map[string]any{"data": data}})
			if compactJSON(a.get("result")) != x.want {
				t.Errorf("%s: got %s", kind, a.text)
			}
		}
		if a := c.run(t, id, code); a.get("status") != "completed" || a.get("result") == nil {
			t.Errorf("%s unchanged: got %s", kind, a.text)
		}
	}
}
