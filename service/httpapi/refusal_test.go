package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// sendWithPython sends a whole body before it reads the answer, as Python's http.client does.
const sendWithPython = `
import http.client, sys
url, method, path, key, file = sys.argv[1:]
connection = http.client.HTTPConnection(url.removeprefix("http://"))
body = open(file, "rb").read()
connection.request(method, path, body, {"Content-Type": "application/json", "Authorization": "Bearer " + key})
answer = connection.getresponse()
print(answer.status, answer.getheader("Content-Type"))
print(answer.read().decode())
`

// A request that is refused before its body is read gets its answer all the same. If the server closed the connection
// while the client still sends, the client could see a reset instead.
func TestClientsThatSendALargeBodyReadTheRefusal(t *testing.T) {
	t.Parallel()
	const bytesSent = 20 << 20
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, bytes.Repeat([]byte(" "), bytesSent), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := newUser(t, sandbox.RoleAgent)
	limited := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"requests_per_minute": 1})
	id := agent.create(t, map[string]any{"upload_max_bytes": 1000})
	curl := func(more ...string) func(t *testing.T, method, path, key string) (string, error) {
		return func(t *testing.T, method, path, key string) (string, error) {
			arguments := append(more, "-sS", "-X", method, "-H", "Content-Type: application/json", "--data-binary",
				"@"+file, "-H", "Authorization: Bearer "+key, "-w", "\n%{http_code} %{content_type}", serverURL+path)
			out, err := exec.CommandContext(t.Context(), "curl", arguments...).Output()
			end := bytes.LastIndexByte(out, '\n')
			return fmt.Sprintf("%s\n%s", out[end+1:], out[:max(end, 0)]), err
		}
	}
	clients := map[string]func(t *testing.T, method, path, key string) (string, error){
		"Go": func(t *testing.T, method, path, key string) (string, error) {
			body, err := os.Open(file)
			if err != nil {
				return "", err
			}
			defer body.Close()
			req, err := http.NewRequestWithContext(t.Context(), method, serverURL+path, body)
			if err != nil {
				return "", err
			}
			req.ContentLength = bytesSent
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return fmt.Sprintf("%d %s\n%s", resp.StatusCode, resp.Header.Get("Content-Type"), text), err
		},
		"curl":            curl(),
		"curl, no Expect": curl("-H", "Expect:"),
		"Python": func(t *testing.T, method, path, key string) (string, error) {
			out, err := exec.CommandContext(t.Context(), os.Getenv("GLASSHOUSE_PYTHON"), "-c", sendWithPython,
				serverURL, method, path, key, file).CombinedOutput()
			return string(out), err
		},
	}
	for name, send := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, x := range []struct {
				method, path, key string
				status            int
			}{
				{"POST", "/sandbox/agent/quick-execute", "wrong", 401},
				{"POST", "/sandbox/agent/quick-execute", limited.secret, 429},
				{"POST", "/sandbox/agent/quick-execute", agent.secret, 413},
				{"POST", "/sandbox/" + id + "/debug", agent.secret, 413},
				{"POST", "/nothing", agent.secret, 404},
				{"POST", "/executions", agent.secret, 405},
				{"POST", "/sandbox/cleanup-all?x=1", agent.secret, 422},
				{"PUT", "/sandbox/" + id + "/files/x", "wrong", 401},
				{"PUT", "/sandbox/" + id + "/files/x", agent.secret, 413},
				{"PUT", "/sandbox/none/files/x", agent.secret, 404},
			} {
				for range 3 {
					if x.status == http.StatusTooManyRequests {
						limited.do(t, "GET", "/executions", nil) // takes the request that the key may have again by now
					}
					got, err := send(t, x.method, x.path, x.key)
					want := fmt.Sprintf("%d application/problem+json\n{", x.status)
					if err != nil || !strings.HasPrefix(got, want) {
						t.Errorf("%s %s: got %.300q, %v, want %q", x.method, x.path, got, err, want)
						break
					}
				}
			}
		})
	}
}

// A body that a route does not use does not lose the answer either.
func TestClientsThatSendAnUnusedBodyReadTheAnswer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, bytes.Repeat([]byte(" "), 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), os.Getenv("GLASSHOUSE_PYTHON"), "-c", sendWithPython, serverURL,
		"GET", "/executions", newUser(t, sandbox.RoleAgent).secret, file).CombinedOutput()
	if want := "200 application/json\n{"; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("got %.300q, %v, want %q", out, err, want)
	}
}
