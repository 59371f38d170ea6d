package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer bounds what is read of one answer: the largest asked for holds 1 MB
// of stdout.
const maxAnswer = 16 << 20

// client speaks the API, with keep-alive, as an agent's does.
type client struct {
	base, key string
	http      *http.Client
}

func newClient(base, key string) *client {
	return &client{base: base, key: key, http: &http.Client{
		Timeout:   60 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}}
}

// execution is what the benchmark looks at of an answer.
type execution struct {
	Status    string           `json:"status"`
	Result    json.RawMessage  `json:"result"`
	Stdout    string           `json:"stdout"`
	Error     *string          `json:"error"`
	Truncated map[string]int64 `json:"truncated"`
	Outputs   []struct {
		Data map[string]json.RawMessage `json:"data"`
	} `json:"outputs"`
	Isolation struct {
		Level string `json:"level"`
	} `json:"isolation"`
}

// do sends one request; an HTTP status other than 2xx is an error with the
// answer's beginning.
func (c *client) do(ctx context.Context, method, path string, body, into any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: HTTP %d: %.300s", method, path, resp.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// create opens a sandbox with the given config (nil: the default) and returns
// its id.
func (c *client) create(ctx context.Context, config map[string]any) (string, error) {
	if config == nil {
		config = map[string]any{}
	}
	var answer struct {
		ID string `json:"sandbox_id"`
	}
	err := c.do(ctx, http.MethodPost, "/sandbox/create", config, &answer)
	return answer.ID, err
}

func (c *client) remove(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/sandbox/"+id, nil, nil)
}

// execute runs code in a sandbox.
func (c *client) execute(ctx context.Context, id, code string, values map[string]any) (*execution, error) {
	return c.run(ctx, "/sandbox/"+id+"/execute", code, values)
}

// quick runs code in a fresh sandbox that is gone afterwards.
func (c *client) quick(ctx context.Context, code string, values map[string]any) (*execution, error) {
	return c.run(ctx, "/sandbox/agent/quick-execute", code, values)
}

func (c *client) run(ctx context.Context, path, code string, values map[string]any) (*execution, error) {
	body := map[string]any{"code": code}
	if values != nil {
		body["context"] = values
	}
	var e execution
	if err := c.do(ctx, http.MethodPost, path, body, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// expect is what an execution must be. Zero fields other than status are not
// looked at, but stdout always is.
type expect struct {
	status, result, stdout, errorHas string
}

// check says how an execution differs, or nil.
func (x expect) check(e *execution) error {
	said := ""
	if e.Error != nil {
		said = *e.Error
	}
	switch {
	case e.Status != x.status:
		return fmt.Errorf("status is %q, not %q (error: %.200s)", e.Status, x.status, said)
	case e.Stdout != x.stdout:
		return fmt.Errorf("stdout is %.80q, not %.80q", e.Stdout, x.stdout)
	case x.result != "" && !sameJSON(string(e.Result), x.result):
		return fmt.Errorf("result is %.80s, not %.80s", e.Result, x.result)
	case x.errorHas != "" && !bytes.Contains([]byte(said), []byte(x.errorHas)):
		return fmt.Errorf("error is %.200q, without %q", said, x.errorHas)
	}
	return nil
}

func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
