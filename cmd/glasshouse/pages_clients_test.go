//go:build clients

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"glasshouse/service/chat/chattest"
)

// TestPages opens the pages under /ui/ in Chromium: sign-in, lists, filters, live updates, hostile outputs, revoked
// keys, and what axe-core says of each page in both colour schemes. GLASSHOUSE_SCREENSHOTS names a folder that gets a
// picture of each page.
func TestPages(t *testing.T) {
	t.Parallel()
	if os.Getenv("GLASSHOUSE_CLIENT_PAGES") == "" {
		t.Skip("GLASSHOUSE_CLIENT_PAGES does not name the folder of playwright-core; scripts/test clients installs it")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium in PATH; install Debian's package chromium")
	}
	endpoint := chattest.Start(chatScripts)
	defer endpoint.Close()
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--model-url="+endpoint.URL(), "--model-name=scripted")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/clients/pages/check.js", admin.address, admin.key, browser,
		os.Getenv("GLASSHOUSE_SCREENSHOTS"))
	cmd.Env = append(os.Environ(), "GLASSHOUSE_MODEL_HOST="+endpoint.Host())
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks := 0
	for lines := bufio.NewScanner(out); lines.Scan(); checks++ {
		var check struct{ Name, Error string }
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(check.Name, func(t *testing.T) {
			if check.Error != "" {
				t.Error(check.Error)
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Fatalf("got %v after %d checks, want all of them\n%s", err, checks, problems.String())
	}
}

// chatScripts are the replies of the model in testdata/clients/pages/chat.js.
var chatScripts = map[string][]chattest.Reply{
	"stream": {{Chunks: []string{"The first part. "}, Hold: true, After: []string{"The last part."}}},
	"figure": {
		{Chunks: []string{"I draw it."}, Calls: []chattest.Call{chattest.Python(`import matplotlib.pyplot as plt
import pathlib
print("drawn by code")
plt.plot([1, 4, 9])
plt.show()
folder = pathlib.Path("/session/artifacts")
folder.mkdir(exist_ok=True)
_ = (folder / "squares.csv").write_text("n,square\n1,1\n")`)}},
		{Chunks: []string{"## Squares\n\nThey **grow**:\n\n- one\n- two\n\n| n | n² |\n|---|---|\n| 2 | 4 |\n\n" +
			"```python\nprint(2 ** 2)\n```\nThe end of the figure."}},
	},
	"rows": {
		{Calls: []chattest.Call{{Tool: "query_database",
			Arguments: `{"sql":"SELECT 7 AS \"<img src=x onerror=alert(1)>\", 'text' AS words"}`}}},
		{Chunks: []string{"Those are the rows."}},
	},
	"loop": {{Calls: []chattest.Call{chattest.Python(`print("the loop has begun", flush=True)
while True:
    pass`)}}},
	"overloaded": {{Status: 429, Header: map[string]string{"Retry-After": "17"},
		Body: `{"error":{"message":"<img src=x onerror=alert(1)> too many"}}`}},
	"hostile": {{Chunks: []string{`<img src=x onerror="window.owned=1"><script>window.owned=1</script> `,
		"![picture](/leak.png) ![out](http://127.0.0.1:9/leak.png) [link](javascript:window.owned=1) ",
		"**<svg onload=window.owned=1>** `<b>code</b>`\n\n",
		"```html\n<iframe srcdoc='<script>top.owned=1</script>'>\n```\n",
		"| <img src=x onerror=window.owned=1> |\n|---|\n| javascript:alert(1) |\n\nThe end of the attack."}}},
	"files": {
		{Calls: []chattest.Call{chattest.Python(`print(open("/data/numbers.txt").read())`)}},
		{Chunks: []string{"I have read it."}},
	},
}
