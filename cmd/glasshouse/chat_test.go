package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/service/chat/chattest"
)

// chatRequest sends a request and returns the body of its response, which must have a status of success.
func (c *client) chatRequest(t *testing.T, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: got HTTP %d, %v: %s", method, path, response.StatusCode, err, text)
	}
	return string(text)
}

// TestChatSurvivesAKill kills the service in the middle of an answer, and goes on with the conversation afterwards.
func TestChatSurvivesAKill(t *testing.T) {
	t.Parallel()
	const key = "sk-of-the-endpoint"
	endpoint := chattest.Start(map[string][]chattest.Reply{
		"begin": {{Chunks: []string{"I run it."}, Calls: []chattest.Call{chattest.Python("x = 41\nprint('kept')")}},
			{Chunks: []string{"not finished"}, Hold: true}},
		"go on": {{Calls: []chattest.Call{chattest.Python("x + 1")}}, {Chunks: []string{"finished"}}},
	})
	defer endpoint.Close()
	dir, path := dataDir(t), binary(t)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{"--model-url=" + endpoint.URL(), "--model-name=scripted", "--model-key-file=" + keyFile}
	cmd, admin := start(t, path, dir, settings...)
	var made struct {
		ID string `json:"conversation_id"`
	}
	if err := json.Unmarshal([]byte(admin.chatRequest(t, "POST", "/chat/conversations", "")), &made); err != nil {
		t.Fatal(err)
	}
	conversation := "/chat/conversations/" + made.ID
	admin.chatRequest(t, "POST", conversation+"/messages", `{"text":"begin"}`)
	eventually(t, func() error {
		if n := len(endpoint.Requests()); n != 2 {
			return fmt.Errorf("the model got %d requests, want 2", n)
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_, admin = start(t, path, dir, settings...)
	view := admin.chatRequest(t, "GET", conversation, "")
	for _, want := range []string{"I run it.", "kept", `"note":"interrupted"`, `"answering":false`} {
		if !strings.Contains(view, want) {
			t.Errorf("after the kill: got %s, want %s", view, want)
		}
	}
	admin.chatRequest(t, "POST", conversation+"/messages", `{"text":"go on"}`)
	eventually(t, func() error {
		if view = admin.chatRequest(t, "GET", conversation, ""); !strings.Contains(view, `"answering":false`) {
			return errors.New("the answer has not ended")
		}
		return nil
	})
	for _, want := range []string{`"note":"new-session"`, "NameError", "finished"} {
		if !strings.Contains(view, want) {
			t.Errorf("after the restart: got %s, want %s", view, want)
		}
	}
	for _, path := range []string{conversation, "/chat", "/system", "/executions?include=record"} {
		if text := admin.chatRequest(t, "GET", path, ""); strings.Contains(text, key) {
			t.Errorf("%s shows the key of the endpoint: %s", path, text)
		}
	}
	if got := endpoint.Requests()[0].Header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("the endpoint got Authorization %q, want the key of the file", got)
	}
}
