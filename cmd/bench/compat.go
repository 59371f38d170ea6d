package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// compatRow is 1+1 through a compatibility API, in a session that exists.
type compatRow struct {
	name     string
	settings string // with which the service serves the API below a folder of its main listener
	open     openFunc
	peerName string // of a program of the API's own kind; empty: none
	peer     peerFunc
	goal     goal // of the ratio to that peer
}

// compatAPIs are the compatibility APIs. To measure another one, add a line.
var compatAPIs = []compatRow{
	{"Jupyter's WebSocket", "--compat=jupyter", openJupyterRun, "Jupyter kernel", openKernel, ofPeer(1/5.0, 0)},
}

// maxCompatMilliseconds is how much longer 1+1 may take through a compatibility API than by execute.
const maxCompatMilliseconds = 0.5

// compatRows returns two rows of each compatibility API: its time compared with that of another server of its kind, and
// how much longer it takes than the same by execute, in the same service.
func compatRows(options) []measurement {
	var rows []measurement
	for _, each := range compatAPIs {
		rows = append(rows, measurement{
			name: "1+1 in a loop over " + each.name + ", more than by execute", unit: milliseconds,
			settings: each.settings, samples: someSamples, goal: absolute(maxCompatMilliseconds, 0), open: moreThanExecute(each.open),
		})
		if each.peer != nil {
			rows = append(rows, measurement{
				name: "1+1 in a loop over " + each.name, unit: milliseconds, settings: each.settings,
				samples: fewSamples, goal: each.goal, peerName: each.peerName, peer: each.peer, open: inLoop(each.open),
			})
		}
	}
	return rows
}

// inLoop makes each sample the median of 100.
func inLoop(open openFunc) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		s, err := open(ctx, g)
		s.sample = loop(s.sample)
		return s, err
	}
}

// moreThanExecute measures the difference of a run and of the same run by execute, each the median of 100.
func moreThanExecute(open openFunc) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		through, err := inLoop(open)(ctx, g)
		if err != nil {
			return sampler{}, err
		}
		plain, err := inSandbox(nil, "1+1", isTwo.check, true)(ctx, g)
		end := func() {
			through.end()
			plain.end()
		}
		return sampler{func() (float64, error) {
			ours, err := through.sample()
			if err != nil {
				return 0, err
			}
			execute, err := plain.sample()
			return ours - execute, err
		}, end}, err
	}
}

// openJupyterRun measures 1+1 in a kernel, from the request to its reply, its value and the state idle.
func openJupyterRun(ctx context.Context, g *glasshouse) (sampler, error) {
	var kernel struct{ ID string }
	if err := g.call(ctx, http.MethodPost, "/jupyter/api/kernels", nil, &kernel); err != nil {
		return sampler{}, err
	}
	url := strings.Replace(g.base, "http", "ws", 1) + "/jupyter/api/kernels/" + kernel.ID + "/channels?token=" + g.key
	socket, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return sampler{}, err
	}
	end := func() {
		_ = socket.CloseNow()
		g.removal(ctx, strings.ReplaceAll(kernel.ID, "-", ""))()
	}
	runs := 0
	return sampler{func() (float64, error) {
		runs++
		return timeIt(func() error { return runInKernel(ctx, socket, fmt.Sprint(runs)) })
	}, end}, nil
}

func runInKernel(ctx context.Context, socket *websocket.Conn, id string) error {
	request := `{"header": {"msg_id": "` + id + `", "msg_type": "execute_request", "version": "5.3"}, ` +
		`"channel": "shell", "content": {"code": "1+1"}}`
	if err := socket.Write(ctx, websocket.MessageText, []byte(request)); err != nil {
		return err
	}
	value, isIdle, isReplied := "", false, false
	for !isIdle || !isReplied {
		_, text, err := socket.Read(ctx)
		var m struct {
			Kind    string `json:"msg_type"`
			Content struct {
				State string `json:"execution_state"`
				Data  map[string]string
			}
		}
		if err = errors.Join(err, json.Unmarshal(text, &m)); err != nil {
			return err
		}
		switch {
		case m.Kind == "execute_result":
			value = m.Content.Data["text/plain"]
		case m.Kind == "execute_reply":
			isReplied = true
		case m.Content.State == "idle":
			isIdle = true
		}
	}
	if value != "2" {
		return fmt.Errorf("1+1 in a kernel: got %q, want 2", value)
	}
	return nil
}
