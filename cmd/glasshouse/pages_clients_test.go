//go:build clients

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess/embedded"
	"glasshouse/service/chat/chattest"
	"glasshouse/service/signin/signintest"
)

// TestPages opens the pages under /ui/ in Chromium: sign-in, lists, filters, live updates, hostile outputs, revoked
// keys, and what axe-core says of each page in both colour schemes. GLASSHOUSE_SCREENSHOTS names a folder that gets a
// picture of each page. Two halves of the checks run at a time, each with a service of its own, because a browser and
// its service leave a processor idle. GLASSHOUSE_PAGES_SUITE and GLASSHOUSE_PAGES_CHECK choose checks of both.
func TestPages(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	halves := []string{"1", "2"}
	if os.Getenv("GLASSHOUSE_PAGES_SUITE") != "" || os.Getenv("GLASSHOUSE_PAGES_CHECK") != "" {
		halves = []string{""}
	}
	for _, half := range halves {
		t.Run("half "+half, func(t *testing.T) {
			t.Parallel()
			checkHalf(t, browser, half)
		})
	}
}

// checkHalf runs half of the checks of pages; "" is all. They share a service.
func checkHalf(t *testing.T, browser, half string) {
	t.Helper()
	endpoint := chattest.Start(chatScripts)
	defer endpoint.Close()
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--model-url="+endpoint.URL(), "--model-name=scripted",
		"--max-sandboxes-per-user=200", // each check leaves its sandboxes
		"--mask-columns=users.email")
	checkPages(t, browser, admin, "GLASSHOUSE_MODEL_HOST="+endpoint.Host(), "GLASSHOUSE_PAGES_HALF="+half)
}

// TestPagesWithAnIdentityProvider signs in to the pages in Chromium with an identity provider.
func TestPagesWithAnIdentityProvider(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	provider := signintest.New(t, people)
	_, admin := start(t, binary(t), dataDir(t), withProvider(t, provider)...)
	provider.Allow(admin.address + "/login/oidc/callback")
	checkPages(t, browser, admin, "GLASSHOUSE_PAGES_SUITE=sign_in", "GLASSHOUSE_PROVIDER="+provider.URL)
}

// TestPagesWithSeveralDatabases chooses a database in the playground in Chromium.
func TestPagesWithSeveralDatabases(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	server := startCluster(t, emptyDataDir(t))
	down := "postgres://reader@127.0.0.1:1/none" // nothing listens there
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--mask-columns=sales:orders.email",
		"--database=sales="+server.URL(embedded.RoleReader, embedded.DatabaseKnowledge), "--database=down="+down)
	checkPages(t, browser, admin, "GLASSHOUSE_PAGES_SUITE=databases")
}

// fillHistory adds a million executions of 50 users, a second apart. One in ten failed, one in 50 000 was killed, and
// the code of one in 250 000 has the text "zebra".
const fillHistory = `
INSERT INTO executions (id, sandbox_id, owner, kind, status, code, error, seconds, memory_mb, created_at, completed_at,
	record, cpu_ms, query_count, rows_read)
SELECT format('m-%s', lpad(n::text, 7, '0')), format('s-%s', n / 20), format('user-%s', n % 50), 'execute',
	CASE WHEN n % 50000 = 7 THEN 'killed' WHEN n % 10 = 3 THEN 'failed' ELSE 'completed' END,
	format('number = %s%s', n, CASE WHEN n % 250000 = 9 THEN ' # zebra' ELSE '' END),
	CASE WHEN n % 10 = 3 THEN 'KeyError' END, 0.1, 20, at, at + interval '100 ms',
	convert_to(format('{"execution_id":"m-%s","status":"completed"}', lpad(n::text, 7, '0')), 'UTF8'), 1, 0, 0
FROM (SELECT n, now() - interval '1 day' - interval '1 second' * n AS at FROM generate_series(0, 999999) n) numbered;
ANALYZE executions;
`

// TestPagesWithAMillionExecutions opens the list over a million executions in Chromium, goes to far places, and
// filters. It logs the measured times.
func TestPagesWithAMillionExecutions(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("there is no psql in PATH; install Debian's package postgresql-client")
	}
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir)
	psql := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h",
		filepath.Join(dir, "postgres", "socket"), "-U", "glasshouse_history", "-d", "history", "-f", "-")
	psql.Stdin = strings.NewReader(fillHistory)
	began := time.Now()
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v: %s", err, out)
	}
	t.Logf("a million executions were added in %.0f s", time.Since(began).Seconds())
	checkPages(t, browser, admin, "GLASSHOUSE_PAGES_SUITE=million")
}

// findBrowser returns the path of Chromium. It skips the test if Chromium or the packages that drive it are missing.
func findBrowser(t *testing.T) string {
	t.Helper()
	if os.Getenv("GLASSHOUSE_CLIENT_PAGES") == "" {
		t.Skip("GLASSHOUSE_CLIENT_PAGES does not name the folder of playwright-core; scripts/test clients installs it")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium in PATH; install Debian's package chromium")
	}
	return browser
}

// checkPages runs check.js with variables of its environment, with a subtest for each check.
func checkPages(t *testing.T, browser string, admin *client, variables ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/clients/pages/check.js", admin.address, admin.key, browser,
		os.Getenv("GLASSHOUSE_SCREENSHOTS"))
	cmd.Env = append(os.Environ(), variables...)
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
		var check struct {
			Name, Error string
			Note        json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(check.Name, func(t *testing.T) {
			if check.Error != "" {
				t.Error(check.Error)
			}
			if check.Note != nil {
				t.Logf("%s", check.Note)
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
	"parallel": {
		{Calls: []chattest.Call{chattest.Python(`print("one")`), chattest.Python(`print("two")`),
			{Tool: "query_database", Arguments: `{"sql":"SELECT 7 AS seven"}`}}},
		{Chunks: []string{"> Two lines\n> of a quote.\n\n| city | revenue |\n|:---|---:|\n| Paris | 980 |\n\n",
			"All are done."}},
	},
	"loop": {{Calls: []chattest.Call{chattest.Python(`print("the loop has begun", flush=True)
while True:
    pass`)}}},
	"overloaded": {{Status: 429, Header: map[string]string{"Retry-After": "17"},
		Body: `{"error":{"message":"<img src=x onerror=alert(1)> too many"}}`}},
	"verbose": {
		{Calls: []chattest.Call{chattest.Python(`import time
for n in range(20):
    print("x" * 100_000, flush=True)
time.sleep(1)`)}},
		{Chunks: []string{"It was long."}},
	},
	"hostile": {
		{Calls: []chattest.Call{chattest.Python("print('printed \u2066backwards') # \u202e")}},
		{Chunks: []string{`<img src=x onerror="window.owned=1"><script>window.owned=1</script> `,
			"![picture](/leak.png) ![out](http://127.0.0.1:9/leak.png) [link](javascript:window.owned=1) ",
			"**<svg onload=window.owned=1>** `<b>code</b>`\n\n",
			"```html\n<iframe srcdoc='<script>top.owned=1</script>'>\n```\n",
			"An invoice_\u202efdp.exe of the model.\n\n",
			"| <img src=x onerror=window.owned=1> |\n|---|\n| javascript:alert(1) |\n\nThe end of the attack."}},
	},
	"odd": {
		{Calls: []chattest.Call{{Tool: "__proto__", Arguments: "{}"}, {Tool: "constructor", Arguments: "{}"}}},
		{Chunks: []string{"x ", strings.Repeat("`", 12_000), strings.Repeat("a", 12_000),
			" `code` **end** of the ticks."}},
	},
	"files": {
		{Calls: []chattest.Call{chattest.Python(`print(open("/data/numbers.txt").read())`)}},
		{Chunks: []string{"I have read it."}},
	},
}
