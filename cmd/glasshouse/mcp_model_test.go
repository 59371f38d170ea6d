//go:build clients

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// modelCalls is what agents do. All run_python calls use the session of the first.
var modelCalls = []modelCall{
	{
		name: "print", tool: "run_python",
		arguments: map[string]any{"code": "print('printed for the model')\n6 * 7"},
		wants:     []string{"printed for the model\nresult: 42\n", "execution_id=EXECUTION status=completed"},
	}, {
		name: "printed table", tool: "run_python",
		arguments: map[string]any{
			"code": "import pandas\nframe = pandas.DataFrame({'plan': ['free', 'pro'], 'users': [17, 25]})\n" +
				"print(frame)",
		},
		wants: []string{"   plan  users\n0  free     17\n1   pro     25\n", "status=completed"},
	}, {
		name: "table as the result", tool: "run_python", arguments: map[string]any{"code": "frame"},
		wants: []string{"result:\n", "   plan  users\n0  free     17\n1   pro     25\n", "status=completed"},
	}, {
		name: "figure", tool: "run_python",
		arguments: map[string]any{"code": "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nprint('plotted')"},
		wants:     []string{"plotted\noutput:1 figure: 1 line\n", "status=completed"},
		images:    1,
	}, {
		name: "error", tool: "run_python", arguments: map[string]any{"code": "rows = {'amount': 1}\nrows['amuont']"},
		wants: []string{
			"error: KeyError: 'amuont'\n  line 2, in <module>: rows['amuont']\nhint: did you mean 'amount'?\n",
			"  rows = {'amount': 1}\n", "execution_id=EXECUTION status=failed",
		},
	}, {
		name: "cut", tool: "run_python", arguments: map[string]any{"code": "for n in range(20_000): print(n)"},
		wants: []string{
			"0\n1\n2\n", `characters left out; get_execution(execution_id="EXECUTION", part="stdout", offset=`,
			"19998\n19999\n", "status=completed",
		},
	}, {
		name: "earlier execution", tool: "get_execution", reads: "print",
		wants: []string{"printed for the model\nresult: 42\n", "execution_id=EXECUTION status=completed"},
	}, {
		name: "earlier failure", tool: "get_execution", reads: "error",
		wants: []string{"error: KeyError: 'amuont'\n", "hint: did you mean 'amount'?\n", "status=failed"},
	}, {
		name: "rest of stdout", tool: "get_execution", reads: "cut",
		arguments: map[string]any{"part": "stdout", "offset": 10},
		wants: []string{
			"5\n6\n7\n", "\n[characters 10 to 8010 of ",
			`go on with get_execution(execution_id="EXECUTION", part="stdout", offset=8010)]`,
		},
	}, {
		name: "rows", tool: "query_database",
		arguments: map[string]any{"sql": "SELECT n, n * n AS square FROM generate_series(1, 3) n"},
		wants:     []string{"columns: [\"n\",\"square\"]\n[1,1]\n[2,4]\n[3,9]\n3 rows"},
	}, {
		name: "refused statement", tool: "query_database", arguments: map[string]any{"sql": "DROP TABLE users"},
		wants: []string{"DROP is refused: db_query only reads"},
	},
}

// TestWhatModelsAreSent runs real clients, unchanged, with a model that calls tools by a script, and reads the requests
// that the model receives. The model must be sent everything that the tools answered.
func TestWhatModelsAreSent(t *testing.T) {
	_, admin := start(t, binary(t), dataDir(t), withPackages())
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	for name, command := range map[string]func(context.Context, *testing.T, *client, string) *exec.Cmd{
		"claude-code": claudeCode, "codex": codex,
		"pydantic-ai": pythonAgent("mcp"), "openai-agents": pythonAgent("mcp"), "langchain": pythonAgent("mcp-before"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := &scriptedModel{calls: modelCalls}
			server := httptest.NewServer(model)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for a client that never ends
			defer cancel()
			cmd := command(ctx, t, admin.newUser(t, name), server.URL)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%.20000s", err, out)
			}
			model.check(t)
			if t.Failed() {
				t.Logf("the client printed:\n%.20000s", out)
			}
		})
	}
}

// clientProgram returns the program of a client's package for this machine. pattern is below node_modules.
func clientProgram(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(installedClient(t, folder), "node_modules", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skipf("the packages of testdata/clients/%s have no program for this machine", folder)
	}
	return found[0]
}

// loopbackOnly are variables with which a client reaches nothing beyond this machine.
var loopbackOnly = []string{
	"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1",
}

// claudeCode returns a run of Claude Code, with no other tools than those of the service. The server is added as in
// docs/mcp.md.
func claudeCode(ctx context.Context, t *testing.T, c *client, model string) *exec.Cmd {
	home, program := t.TempDir(), clientProgram(t, "claude-code", "@anthropic-ai/claude-code-linux-*/claude")
	command := func(arguments ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, arguments...)
		cmd.Dir = home
		cmd.Env = append([]string{
			"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none",
			"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", // telemetry among it
			"MCP_CONNECTION_NONBLOCKING=false", // the first request has the tools
		}, loopbackOnly...)
		return cmd
	}
	if out, err := command("mcp", "add", "--transport", "http", "glasshouse", c.address+"/mcp",
		"--header", "Authorization: Bearer "+c.key).CombinedOutput(); err != nil {
		t.Fatalf("claude mcp add: %v\n%s", err, out)
	}
	return command("--print", "Go.", "--tools", "", "--allowedTools", "mcp__glasshouse")
}

// codex returns a run of Codex. The server is added as in docs/mcp.md.
func codex(ctx context.Context, t *testing.T, c *client, model string) *exec.Cmd {
	home, program := t.TempDir(), clientProgram(t, "codex", "@openai/codex-linux-*/vendor/*/bin/codex")
	command := func(arguments ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, arguments...)
		cmd.Dir = home
		cmd.Env = append([]string{
			"HOME=" + home, "CODEX_HOME=" + home, "PATH=" + os.Getenv("PATH"), "GLASSHOUSE_KEY=" + c.key,
		}, loopbackOnly...)
		return cmd
	}
	if out, err := command("mcp", "add", "glasshouse", "--url", c.address+"/mcp",
		"--bearer-token-env-var", "GLASSHOUSE_KEY").CombinedOutput(); err != nil {
		t.Fatalf("codex mcp add: %v\n%s", err, out)
	}
	return command("exec", "--skip-git-repo-check", "--ephemeral", "--config", `model="scripted"`,
		"--config", `model_provider="scripted"`, "--config", `model_providers.scripted.name="scripted"`,
		"--config", fmt.Sprintf("model_providers.scripted.base_url=%q", model+"/v1"), "Go.")
}

// pythonAgent returns a function for a run of agent.py of a client folder with the framework that the test is named
// after.
func pythonAgent(folder string) func(context.Context, *testing.T, *client, string) *exec.Cmd {
	return func(ctx context.Context, t *testing.T, c *client, model string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(installedClient(t, folder), "bin", "python"),
			filepath.Join("testdata", "clients", folder, "agent.py"), filepath.Base(t.Name()), c.address, model+"/v1")
		cmd.Env = append(append(os.Environ(), "GLASSHOUSE_KEY="+c.key), loopbackOnly...)
		return cmd
	}
}
