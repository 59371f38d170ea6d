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

// maxAnswer bounds the bytes of an answer. The largest is that of db_query with 1 MB of output.
const maxAnswer = 16 << 20

// client calls the API, or a peer with the same JSON fields, over persistent connections.
type client struct {
	base, key string
	shared    *connections // for concurrent requests
	alone     *connections // for requests that are timed one at a time
	http      *http.Client // for streams
}

func newClient(base, key string) *client {
	return &client{
		base: base, key: key, shared: newConnections(base, false), alone: newConnections(base, true),
		http: &http.Client{Timeout: exchangeTimeout, Transport: &http.Transport{DisableCompression: true}},
	}
}

// execution has the fields of an answer that the benchmarks check.
type execution struct {
	ID      string          `json:"execution_id"`
	Status  string          `json:"status"`
	Result  json.RawMessage `json:"result"`
	Stdout  string          `json:"stdout"`
	Error   *string         `json:"error"`
	Outputs []struct {
		Data map[string]json.RawMessage `json:"data"`
	} `json:"outputs"`
	Usage struct {
		WallMS float64 `json:"wall_ms"`
	} `json:"usage"`
}

// send sends one request and returns the body of the answer. A status other than 2xx is an error.
func (c *client) send(ctx context.Context, over *connections, method, path string, body any) ([]byte, error) {
	header := "Authorization: Bearer " + c.key + "\r\n"
	var in []byte
	if body != nil {
		header += "Content-Type: application/json\r\n"
		var err error
		if in, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	status, text, err := over.exchange(ctx, method, path, header, in)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: HTTP %d: %.300s", method, path, status, text)
	}
	return text, err
}

// call sends one request and decodes the answer into out, unless it is nil.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	text, err := c.send(ctx, c.shared, method, path, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// timeCall is a sample of the time from a request to the last byte of its answer.
func (c *client) timeCall(ctx context.Context, method, path string, body any) sampleFunc {
	return func() (float64, error) {
		return timeIt(func() error {
			_, err := c.send(ctx, c.alone, method, path, body)
			return err
		})
	}
}

// create creates a sandbox and returns its id; a nil config is the default.
func (c *client) create(ctx context.Context, config map[string]any) (string, error) {
	if config == nil {
		config = map[string]any{}
	}
	var answer struct {
		ID string `json:"sandbox_id"`
	}
	err := c.call(ctx, "POST", "/sandbox/create", config, &answer)
	return answer.ID, err
}

func (c *client) remove(ctx context.Context, id string) error {
	return c.call(ctx, "DELETE", "/sandbox/"+id, nil, nil)
}

// removal returns a sampler's end that deletes a sandbox.
func (c *client) removal(ctx context.Context, ids ...string) func() {
	return func() {
		for _, id := range ids {
			if err := c.remove(context.WithoutCancel(ctx), id); err != nil {
				progress("a sandbox was not deleted: %v", err)
			}
		}
	}
}

// quickPath runs code in a fresh sandbox, which is deleted afterwards.
const quickPath = "/sandbox/agent/quick-execute"

// executePath runs code in a sandbox.
func executePath(id string) string { return "/sandbox/" + id + "/execute" }

// run runs code and returns the answer.
func (c *client) run(ctx context.Context, path, code string, values map[string]any) (*execution, error) {
	body := map[string]any{"code": code}
	if values != nil {
		body["context"] = values
	}
	e := &execution{}
	return e, c.call(ctx, "POST", path, body, e)
}

// timeRun is a sample of the time of a run. The answer is decoded and checked after the clock has stopped.
func (c *client) timeRun(ctx context.Context, path string, body map[string]any, check func(*execution) error) sampleFunc {
	return func() (float64, error) {
		begun := time.Now()
		text, err := c.send(ctx, c.alone, "POST", path, body)
		took := time.Since(begun)
		if err != nil {
			return 0, err
		}
		var e execution
		if err := json.Unmarshal(text, &e); err != nil {
			return 0, err
		}
		return inMilliseconds(took), check(&e)
	}
}

// runRate is a sample of the rate of runs by concurrent clients. Client n uses paths[n]. The answers are only
// searched for the expected text, since decoding would take CPU time from the service.
func (c *client) runRate(ctx context.Context, paths []string, code string, want expectation) sampleFunc {
	return func() (float64, error) {
		return rate(ctx, len(paths), roundTime, func(ctx context.Context, n int) error {
			text, err := c.send(ctx, c.shared, "POST", paths[n], map[string]any{"code": code})
			if err != nil {
				return err
			}
			return want.search(text)
		})
	}
}

// stream sends a request whose body or answer is large and copies the answer.
func (c *client) stream(ctx context.Context, method, path string, header http.Header, body io.Reader, into io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Errorf("%s %s: HTTP %d: %s", method, path, resp.StatusCode, text)
	}
	_, err = io.CopyBuffer(into, struct{ io.Reader }{resp.Body}, make([]byte, 256<<10))
	return err
}

// expectation has the required fields of an execution. An empty result or error is not checked.
type expectation struct{ status, result, stdout, errorText string }

func (x expectation) check(e *execution) error {
	failure := ""
	if e.Error != nil {
		failure = *e.Error
	}
	switch {
	case e.Status != x.status:
		return fmt.Errorf("got status %q, want %q (error: %.200s)", e.Status, x.status, failure)
	case e.Stdout != x.stdout:
		return fmt.Errorf("got stdout %.80q, want %.80q", e.Stdout, x.stdout)
	case x.result != "" && !equalJSON(e.Result, []byte(x.result)):
		return fmt.Errorf("got result %.80s, want %.80s", e.Result, x.result)
	case !bytes.Contains([]byte(failure), []byte(x.errorText)):
		return fmt.Errorf("got error %.200q, want it to contain %q", failure, x.errorText)
	}
	return nil
}

// search returns an error if the bytes of an answer lack the expectation.
func (x expectation) search(answer []byte) error {
	want := []string{fmt.Sprintf(`"status":%q`, x.status), fmt.Sprintf(`"stdout":%q`, x.stdout)}
	if x.result != "" {
		want = append(want, `"result":`+x.result)
	}
	for _, part := range want {
		if !bytes.Contains(answer, []byte(part+",")) {
			return fmt.Errorf("got answer %.300s, want it to contain %s", answer, part)
		}
	}
	return nil
}

func equalJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
