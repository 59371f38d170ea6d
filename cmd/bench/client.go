package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// maxAnswer bounds what is read of one answer: the largest asked for holds 1 MB
// of stdout.
const maxAnswer = 16 << 20

// client speaks the API, with keep-alive, as an agent's does.
type client struct {
	base, key string
	wires     wires
	direct    wires        // for what is timed alone
	http      *http.Client // for streams
}

func newClient(base, key string) *client {
	return &client{base: base, key: key, wires: newWires(base, false), direct: newWires(base, true), http: &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true}}}
}

// alone is the client for what is timed while nothing else is asked.
func (c *client) alone() *client {
	one := *c
	one.wires = c.direct
	return &one
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
	text, err := c.send(ctx, method, path, body)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// send sends one request and returns the answer, as do does.
func (c *client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	header := "Authorization: Bearer " + c.key + "\r\n"
	var in []byte
	if body != nil {
		header += "Content-Type: application/json\r\n"
		var err error
		if in, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	status, text, err := c.wires.exchange(ctx, method, path, header, in)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: HTTP %d: %.300s", method, path, status, text)
	}
	return text, err
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

// quickly is the path of runs in a fresh sandbox that is gone afterwards.
const quickly = "/sandbox/agent/quick-execute"

// in is the path of runs in a sandbox.
func in(id string) string { return "/sandbox/" + id + "/execute" }

// execute runs code in a sandbox.
func (c *client) execute(ctx context.Context, id, code string, values map[string]any) (*execution, error) {
	return read(c.run(ctx, in(id), code, values))
}

// quick runs code in a fresh sandbox that is gone afterwards.
func (c *client) quick(ctx context.Context, code string, values map[string]any) (*execution, error) {
	return read(c.run(ctx, quickly, code, values))
}

// run runs code at the path of a kind of run, and returns the answer.
func (c *client) run(ctx context.Context, path, code string, values map[string]any) ([]byte, error) {
	body := map[string]any{"code": code}
	if values != nil {
		body["context"] = values
	}
	return c.send(ctx, http.MethodPost, path, body)
}

// timed is a subject: a run, from the request to the last byte of the answer, which is
// looked at after that.
func (c *client) timed(ctx context.Context, path, code string, check func(*execution, error) error) func() (time.Duration, error) {
	alone := c.alone()
	return func() (time.Duration, error) {
		begun := time.Now()
		text, err := alone.run(ctx, path, code, nil)
		took := time.Since(begun)
		return took, check(read(text, err))
	}
}

func read(answer []byte, err error) (*execution, error) {
	var e execution
	if err == nil {
		err = json.Unmarshal(answer, &e)
	}
	return &e, err
}

// expect is what an execution must be. Zero fields other than status are not
// looked at, but stdout always is.
type expect struct {
	status, result, stdout, errorHas string
}

// check says how an execution differs, or nil.
func (x expect) check(e *execution, err error) error {
	if err != nil {
		return err
	}
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

// glance is check for rates, where the client must not take the machine's time: it looks
// for what is expected among the bytes of an answer.
func (x expect) glance(answer []byte, err error) error {
	if err != nil {
		return err
	}
	want := []string{fmt.Sprintf(`"status":%q`, x.status), fmt.Sprintf(`"stdout":%q`, x.stdout)}
	if x.result != "" {
		want = append(want, `"result":`+x.result)
	}
	for _, part := range want {
		if !bytes.Contains(answer, []byte(part+",")) {
			return fmt.Errorf("%s is not in %.300s", part, answer)
		}
	}
	return nil
}

func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
