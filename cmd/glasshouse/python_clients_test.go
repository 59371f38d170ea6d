//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installedClient returns the folder of the packages of testdata/clients/NAME. It skips the test if there is none.
func installedClient(t *testing.T, name string) string {
	t.Helper()
	variable := "GLASSHOUSE_CLIENT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	folder := os.Getenv(variable)
	if folder == "" {
		t.Skipf("%s is not set; set it to a folder with the packages of testdata/clients/%s, as "+
			"`scripts/test clients` does", variable, name)
	}
	return folder
}

// TestFrameworks runs the integrations of clients/python with the real frameworks and with a scripted model.
func TestFrameworks(t *testing.T) {
	_, admin := start(t, binary(t), dataDir(t), withPackages())
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	source, err := filepath.Abs("../../clients/python/src")
	if err != nil {
		t.Fatal(err)
	}
	for name, programs := range map[string][]string{
		"langchain": {
			"testdata/clients/langchain/check.py", "../../examples/langgraph_agent.py",
		},
		"smolagents": {"testdata/clients/smolagents/check.py"},
		"adk":        {"testdata/clients/adk/check.py"},
	} {
		t.Run(name, func(t *testing.T) {
			python := filepath.Join(installedClient(t, name), "bin", "python")
			for _, program := range programs {
				cmd := exec.Command(python, program)
				cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1",
					"GLASSHOUSE_URL="+admin.address, "GLASSHOUSE_KEY="+admin.newUser(t, name).key)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%.20000s", program, err, out)
				}
				// The agent of the example reads a hint, repairs its code, and hands on a file.
				for _, want := range []string{"KeyError", "file: countries.csv"} {
					if strings.HasSuffix(program, "langgraph_agent.py") && !strings.Contains(string(out), want) {
						t.Errorf("%s: got\n%.20000s\nwant %s", program, out, want)
					}
				}
			}
		})
	}
}

// TestTypesOfPythonClient checks the types of the client and of its integrations with pyright and mypy, which both know
// the frameworks' packages.
func TestTypesOfPythonClient(t *testing.T) {
	pyright := filepath.Join(installedClient(t, "pyright"), "node_modules", "pyright", "index.js")
	for name, integration := range map[string]string{
		"langchain": "langchain.py", "smolagents": "smolagents.py", "adk": "adk.py",
	} {
		t.Run(name, func(t *testing.T) {
			python := filepath.Join(installedClient(t, name), "bin", "python")
			files := []string{filepath.Join("src", "glasshouse_sandbox", integration)}
			for _, file := range []string{"__init__.py", "guide.py"} {
				files = append(files, filepath.Join("src", "glasshouse_sandbox", file))
			}
			checkers := [][]string{append([]string{"node", pyright, "--pythonpath", python}, files...)}
			if dev := os.Getenv("GLASSHOUSE_DEV_PYTHON"); dev != "" {
				checkers = append(checkers, append([]string{dev, "-m", "mypy", "--strict", "--cache-dir", t.TempDir(),
					"--follow-imports=silent", "--python-executable", python}, files...))
			}
			for _, checker := range checkers {
				cmd := exec.Command(checker[0], checker[1:]...)
				cmd.Dir = "../../clients/python"
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", strings.Join(checker[:3], " "), err, out)
				}
			}
		})
	}
}
