//go:build nightly

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// notAmplified are the operations without a text that the test can repeat: streams, which have no end, the WebSocket,
// which has a target of its own, and operations that end what the other targets use.
var notAmplified = regexp.MustCompile(`events$|/dap$|^DELETE |^HEAD |/logout$|/environments/refresh$|/cleanup-all$`)

// formPart is a body of the type formType.
const (
	formType = "multipart/form-data; boundary=B"
	formPart = "--B\r\nContent-Disposition: form-data; name=\"files\"; filename=\"x.txt\"\r\n\r\nx\r\n--B--\r\n"
)

// rawRequest is a request whose body, query string or last part of the path is a text.
type rawRequest struct {
	method, url, secret string
	headers             map[string]string
	where               string          // body, query or path
	undo                func(id string) // is called with the identifier of a debug session that the request began
}

var begunSession = regexp.MustCompile(`"session_id":"(\w+)"`)

// send sends the request with a text and reads the whole answer. It returns an error if the answer is one.
func (r rawRequest) send(ctx context.Context, text string) error {
	target, body := r.url, io.Reader(http.NoBody)
	switch r.where {
	case "query":
		values, _ := url.ParseQuery(text) // returns what it understands
		target += "?" + values.Encode()
	case "path":
		target += url.PathEscape(text)
	default:
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.secret)
	req.Header.Set("X-API-Key", r.secret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	begin, err := io.ReadAll(io.LimitReader(res.Body, 1000))
	if _, rest := io.Copy(io.Discard, res.Body); err == nil {
		err = rest
	}
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, begin)
	}
	if id := begunSession.FindSubmatch(begin); id != nil && r.undo != nil {
		r.undo(string(id[1]))
	}
	return err
}

// routeAmplifiers returns a target for the body, the query string and the last part of the path of each operation of
// the OpenAPI document, and for the tools of the MCP server. The user creator sends the requests that create sandboxes,
// which are deleted now and then.
func routeAmplifiers(t *testing.T, c, creator *client, texts map[string]string) (list []*amplifier) {
	t.Helper()
	spec := c.must(t, "GET", "/openapi.json", nil)
	schemas, _ := field(spec, "components", "schemas").(map[string]any)
	paths := spec["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			operation, name := operations[method], strings.ToUpper(method)+" "+path
			if notAmplified.MatchString(name) {
				continue
			}
			r := rawRequest{method: strings.ToUpper(method), secret: c.key}
			if strings.HasSuffix(path, "/create") || strings.HasSuffix(path, "/quick-execute") {
				r.secret = creator.key
			}
			if strings.HasSuffix(path, "/debug/sessions") {
				r.undo = func(id string) {
					_ = c.call(context.Background(), "DELETE", "/debug/sessions/"+id, nil, &map[string]any{})
				}
			}
			r.url = c.address + fillPath(path, texts)
			for kind, media := range asMap(field(operation, "requestBody", "content")) {
				r.where, r.headers = "body", map[string]string{"Content-Type": kind}
				seeds := []string{"text"}
				switch kind {
				case "multipart/form-data":
					r.headers["Content-Type"], seeds = formType, []string{formPart}
				case "application/json":
					all, _ := json.Marshal(example(field(media, "schema"), schemas, "", texts, false))
					required, _ := json.Marshal(example(field(media, "schema"), schemas, "", texts, true))
					seeds = []string{string(all), string(required)}
				}
				list = append(list, &amplifier{name: name, seeds: seeds, send: r.send})
			}
			query := url.Values{}
			parameters, _ := field(operation, "parameters").([]any)
			for _, p := range parameters {
				if parameter := fmt.Sprint(field(p, "name")); field(p, "in") == "query" && parameter != "wait" {
					value := fmt.Sprint(example(field(p, "schema"), schemas, parameter, texts, false))
					query.Set(parameter, strings.Trim(value, "[]"))
				}
			}
			if len(query) > 0 {
				r.where = "query"
				seeds := []string{query.Encode()}
				for parameter := range query {
					seeds = append(seeds, url.Values{parameter: query[parameter]}.Encode())
				}
				list = append(list, &amplifier{name: name + "?", seeds: seeds, maxBytes: 3000, send: r.send})
			}
			if open := strings.LastIndexByte(path, '{'); open > 0 && strings.HasSuffix(path, "}") {
				r.where, r.url = "path", c.address+fillPath(path[:open], texts)
				seeds := []string{"a/b.txt", "x"}
				list = append(list, &amplifier{name: name, seeds: seeds, maxBytes: 3000, send: r.send})
			}
		}
	}
	tools := rawRequest{method: "POST", url: c.address + "/mcp", secret: creator.key,
		headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}}
	return append(list, &amplifier{name: "MCP", seeds: mcpSeeds(t, c, texts), send: tools.send})
}

// refused returns the error of the last seed if a target refuses all its seeds, so its texts may not reach much.
func (a *amplifier) refused(ctx context.Context) (err error) {
	for _, seed := range a.seeds {
		if err = a.send(ctx, seed); err == nil {
			return nil
		}
	}
	return err
}

// mcpSeeds returns a call of each tool, and requests of other methods.
func mcpSeeds(t *testing.T, c *client, texts map[string]string) (seeds []string) {
	t.Helper()
	call := func(method string, params any) {
		text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		seeds = append(seeds, string(text))
	}
	call("tools/list", map[string]any{})
	call("resources/read", map[string]any{"uri": "glasshouse://executions/" + texts["execution"]})
	call("completion/complete", map[string]any{"ref": map[string]any{"type": "ref/resource", "uri": "x"},
		"argument": map[string]any{"name": "a", "value": "b"}})
	listed := mcpClient{c, "2025-11-25"}.request(t, "tools/list", map[string]any{})
	var answer struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema any
			}
		}
	}
	text := listed.body[strings.IndexByte(listed.body, '{'):]
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&answer); err != nil || len(answer.Result.Tools) == 0 {
		t.Fatalf("got %s, %v, want tools", listed.body, err)
	}
	for _, tool := range answer.Result.Tools {
		arguments := example(tool.InputSchema, nil, "", texts, false)
		call("tools/call", map[string]any{"name": tool.Name, "arguments": arguments})
	}
	return seeds
}

// compatAmplifiers returns targets of the compatibility APIs, which have no OpenAPI document, and of the WebSockets.
func compatAmplifiers(t *testing.T, c, creator *client, nemo string, texts map[string]string) (list []*amplifier) {
	t.Helper()
	kernel := c.must(t, "POST", "/jupyter/api/kernels", map[string]any{})
	box := c.must(t, "POST", "/e2b/sandboxes", map[string]any{"templateID": "base", "timeout": 24 * 60 * 60})
	port := func(number string, more ...string) map[string]string {
		headers := map[string]string{"E2b-Sandbox-Id": fmt.Sprint(box["sandboxID"]), "E2b-Sandbox-Port": number,
			"X-Access-Token": c.key}
		for n := 0; n+1 < len(more); n += 2 {
			headers[more[n]] = more[n+1]
		}
		return headers
	}
	add := func(method, path, where string, headers map[string]string, seeds ...string) {
		r := rawRequest{method: method, url: c.address + path, secret: c.key, headers: headers, where: where}
		if headers["E2b-Sandbox-Id"] == "" { // it may create a sandbox
			r.secret = creator.key
		}
		list = append(list, &amplifier{name: method + " " + path, seeds: seeds, send: r.send,
			maxBytes: map[string]int{"query": 3000, "path": 3000}[where]})
	}
	code, _ := json.Marshal(texts["code"])
	add("POST", "/e2b/sandboxes", "body", nil,
		`{"templateID":"base","timeout":5,"metadata":{"k":"v"},"envVars":{"A":"b"}}`)
	add("GET", "/e2b/v2/sandboxes", "query", nil, "metadata=k%3Dv&state=running&limit=1&nextToken=x")
	add("POST", "/e2b/execute", "body", port("49999"), `{"code":`+string(code)+`,"env_vars":{"A":"b"}}`)
	add("POST", "/e2b/contexts", "body", port("49999"), `{"language":"python","cwd":"/home/user"}`)
	add("GET", "/e2b/files", "query", port("49983"), "path=/home/user/a/../x&username=user")
	add("POST", "/e2b/files", "query", port("49983", "Content-Type", "application/octet-stream"), "path=/home/user/x")
	add("POST", "/e2b/files", "body", port("49983", "Content-Type", formType), formPart)
	for _, method := range []string{"Stat", "MakeDir", "Move", "Remove", "ListDir"} {
		add("POST", "/e2b/filesystem.Filesystem/"+method, "body", port("49983"),
			`{"path":"/home/user/x","depth":2,"source":"/home/user/x","destination":"/home/user/y"}`)
	}
	add("POST", "/jupyter/api/kernels", "body", nil, `{"name":"python3","env":{"A":"b"},"path":"x"}`)
	add("POST", "/jupyter/api/sessions", "body", nil,
		`{"path":"x.ipynb","name":"x","type":"notebook","kernel":{"name":"python3"}}`)
	add("POST", "/jupyter/login", "body", map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		"password=x&next=/")
	add("POST", "/librechat/v1/exec", "body", nil, `{"lang":"py","code":`+string(code)+
		`,"args":["a"],"files":[{"id":"x","session_id":"y","name":"z"}]}`)
	add("POST", "/librechat/v1/upload", "body", map[string]string{"Content-Type": formType}, formPart)
	add("GET", "/librechat/v1/download/x/", "path", nil, "a/../b.txt")
	for _, path := range []string{"/execute", "/api/v2/execute"} {
		list = append(list, &amplifier{name: "nemo " + path, send: rawRequest{method: "POST", url: nemo + path}.send,
			seeds: []string{`{"generated_code":` + string(code) + `,"timeout":1,"language":"python"}`,
				`{"language":"py","files":[{"content":` + string(code) + `}],"run_timeout":1000}`}})
	}
	upload := rawRequest{method: "POST", url: c.address + "/e2b/files?path=/home/user/x", secret: c.key,
		headers: port("49983", "Content-Type", formType, "Content-Encoding", "gzip")}
	return append(list,
		&amplifier{name: "E2B's gzip uploads",
			seeds: []string{formPart, "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nx"},
			send:  func(ctx context.Context, text string) error { return upload.send(ctx, compressed(text)) }},
		&amplifier{name: "Jupyter's WebSocket", seeds: jupyterSeeds(string(code)), send: socketSender(
			c.address+"/jupyter/api/kernels/"+fmt.Sprint(kernel["id"])+"/channels", c.key, nil,
			`{"header":{"msg_id":"end","msg_type":"kernel_info_request"},"parent_header":{},"metadata":{},`+
				`"content":{},"channel":"shell"}`,
			`"kernel_info_reply"`)},
		&amplifier{name: "DAP", seeds: dapSeeds(string(code)), send: socketSender(
			c.address+"/debug/dap", c.key,
			[]string{`{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"x"}}`},
			`{"seq":99,"type":"request","command":"disconnect"}`, `"command":"disconnect"`)})
}

func jupyterSeeds(code string) (seeds []string) {
	for kind, content := range map[string]string{
		"execute_request":     `{"code":` + code + `,"silent":false,"user_expressions":{"a":"1+1"}}`,
		"complete_request":    `{"code":` + code + `,"cursor_pos":3}`,
		"inspect_request":     `{"code":` + code + `,"cursor_pos":3,"detail_level":1}`,
		"is_complete_request": `{"code":` + code + `}`, "comm_open": `{"comm_id":"x","target_name":"y","data":{}}`,
		"history_request": `{"hist_access_type":"search","pattern":"*a*b*","n":100,"unique":true,"raw":true}`,
		"debug_request":   `{"command":"evaluate","arguments":{"expression":"x"}}`, "input_reply": `{"value":"x"}`,
	} {
		seeds = append(seeds, `{"header":{"msg_id":"1","msg_type":"`+kind+`","session":"s","version":"5.3"},`+
			`"parent_header":{},"metadata":{},"content":`+content+`,"channel":"shell","buffers":[]}`)
	}
	return seeds
}

func dapSeeds(code string) (seeds []string) {
	for command, arguments := range map[string]string{
		"launch": `{"code":` + code + `,"stopOnEntry":true}`,
		"setBreakpoints": `{"source":{"path":"main.py"},"breakpoints":[` +
			`{"line":1,"condition":"x > 1","logMessage":"{x} {y}","hitCondition":"3"}]}`,
		"evaluate": `{"expression":"x + 1","frameId":1,"context":"repl"}`, "completions": `{"text":"x.","column":3}`,
		"setExceptionBreakpoints": `{"filters":["raised"],"filterOptions":[{"filterId":"raised","condition":"x"}]}`,
		"variables":               `{"variablesReference":1}`, "attach": `{"execution":"x"}`,
		"setVariable": `{"name":"x","value":"1","variablesReference":1}`,
	} {
		seeds = append(seeds, `{"seq":2,"type":"request","command":"`+command+`","arguments":`+arguments+`}`)
	}
	return seeds
}

// socketSender returns a function that sends begin, a text and end over a WebSocket, and reads until the answer to end.
// If begin is not empty, the messages have the headers of DAP.
func socketSender(address, secret string, begin []string, end, last string) func(context.Context, string) error {
	kind, header := websocket.MessageText, func(string) string { return "" }
	if len(begin) > 0 {
		kind = websocket.MessageBinary
		header = func(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)) }
	}
	return func(ctx context.Context, text string) error {
		conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + secret}}})
		if err != nil {
			return err
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(64 << 20)
		for _, frame := range append(slices.Clone(begin), text, end) {
			if err := conn.Write(ctx, kind, []byte(header(frame)+frame)); err != nil {
				return err
			}
		}
		for {
			if _, frame, err := conn.Read(ctx); err != nil || bytes.Contains(frame, []byte(last)) {
				return err
			}
		}
	}
}

// compressed returns the longest repetition of a text that gzip makes of at most maxAmplifiedBytes.
func compressed(text string) string {
	for times := 10 << 20 / (len(text) + 1); ; times /= 2 {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		for range times {
			_, _ = io.WriteString(w, text)
		}
		if _ = w.Close(); out.Len() <= maxAmplifiedBytes || times == 0 {
			return out.String()
		}
	}
}

// fillPath puts identifiers and names into the parameters of a path.
func fillPath(path string, texts map[string]string) string {
	owner := map[string]string{"/sandbox/": "sandbox", "/executions/": "execution"}
	return pathParameter.ReplaceAllStringFunc(path, func(found string) string {
		prefix, name, _ := strings.Cut(strings.TrimSuffix(found, "}"), "{")
		return prefix + cmp.Or(texts[owner[prefix]], texts["{"+name+"}"], "x")
	})
}

var pathParameter = regexp.MustCompile(`(/sandbox/|/executions/)?\{\w+\}`)

// example returns a value of a JSON schema. texts has values of fields by their names.
func example(schema any, schemas map[string]any, name string, texts map[string]string, required bool) any {
	s := asMap(schema)
	if ref, ok := s["$ref"].(string); ok {
		s = asMap(schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	for _, choice := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[choice].([]any); ok && len(list) > 0 {
			return example(list[0], schemas, name, texts, required)
		}
	}
	if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok && len(kinds) > 0 {
		kind = fmt.Sprint(kinds[0])
	}
	switch kind {
	case "string":
		return cmp.Or(texts[name], "x")
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{example(s["items"], schemas, name, texts, required)}
	}
	object, needed := map[string]any{}, fmt.Sprint(s["required"])
	for field, inner := range asMap(s["properties"]) {
		if !required || strings.Contains(needed, field) {
			object[field] = example(inner, schemas, field, texts, required)
		}
	}
	if len(object) == 0 && !required {
		object["a"] = 1
	}
	return object
}

// field returns the value at a path of keys of nested objects; nil if there is none.
func field(value any, keys ...string) any {
	for _, key := range keys {
		value = asMap(value)[key]
	}
	return value
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
