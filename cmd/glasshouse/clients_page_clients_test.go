//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// clientsPage is docs/clients.md, with the addresses of a service that was started as its first line says.
type clientsPage struct {
	makeKey string            // the page's second line
	blocks  map[string]string // the blocks of a section in one language, by SECTION.LANGUAGE
	dataDir string
	admin   *client
}

// startClientsPage starts the service with the APIs of the first line of docs/clients.md, at free addresses, which
// replace those of the page.
func startClientsPage(t *testing.T) clientsPage {
	t.Helper()
	text := read(t, "../../docs/clients.md")
	begin := regexp.MustCompile(`^\./scripts/run --compat (\S+)\n(export GLASSHOUSE_KEY=.*\n)$`)
	found := begin.FindStringSubmatch(fencedBlocks(text, "sh")[0])
	if found == nil {
		t.Fatalf("got the first block\n%swant %s", fencedBlocks(text, "sh")[0], begin)
	}
	var addresses []string
	for _, item := range strings.Split(found[1], ",") {
		_, address, _ := strings.Cut(item, "=")
		addresses = append(addresses, address, reserveAddress(t))
	}
	replace := strings.NewReplacer(addresses...).Replace
	page := clientsPage{makeKey: found[2], blocks: map[string]string{}, dataDir: dataDir(t)}
	for _, section := range strings.Split(replace(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		name := strings.ReplaceAll(strings.ToLower(title), " ", "-")
		for _, language := range []string{"sh", "python", "js", "yaml"} {
			page.blocks[name+"."+language] = strings.Join(fencedBlocks(body, language), "")
		}
	}
	_, page.admin = start(t, binary(t), page.dataDir, withPackages(), "--compat", replace(found[1]))
	mcpClient{page.admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	return page
}

// command returns a shell that runs the page's second line and the shell lines of a section, and then program, which
// has their variables. Its working folder has each block of the page, as SECTION.LANGUAGE, and the packages of the
// folder installed for Node.js. Open WebUI and JupyterLab do not start: program gets their arguments in OPEN_WEBUI and
// JUPYTER.
func (p clientsPage) command(t *testing.T, section, installed string, program ...string) *exec.Cmd {
	t.Helper()
	if p.blocks[section+".sh"]+p.blocks[section+".yaml"] == "" {
		t.Fatalf("docs/clients.md has no lines in a section %s", section)
	}
	folder := t.TempDir()
	for name, block := range p.blocks {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"bin": filepath.Dir(binary(t)), "node_modules": filepath.Join(installed, "node_modules")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -e\n" + p.makeKey + `
open-webui() { export OPEN_WEBUI="$*"; }
jupyter() { export JUPYTER="$*"; }
. "./$0.sh"
"$@"`
	cmd := exec.Command("bash", append([]string{"-c", script, section}, program...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GLASSHOUSE_DATA_DIR="+p.dataDir, "PYTHONDONTWRITEBYTECODE=1",
		"NODE_PATH="+links["node_modules"])
	return cmd
}

// check runs a program of testdata/clients after the lines of a section, with the packages of a client.
func (p clientsPage) check(t *testing.T, section, client, program string, arguments ...string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "clients", program))
	if err != nil {
		t.Fatal(err)
	}
	installed := installedClient(t, client)
	interpreter := filepath.Join(installed, "bin", "python")
	if filepath.Ext(program) == ".js" {
		interpreter = nodeOf(installed)
	}
	out, err := p.command(t, section, installed, append([]string{interpreter, path}, arguments...)...).CombinedOutput()
	if t.Logf("%.20000s", out); err != nil {
		t.Errorf("%s: %v", section, err)
	}
}
