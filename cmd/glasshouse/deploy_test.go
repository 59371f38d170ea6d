package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// TestDeployedSettingsExist checks that the files in deploy name settings that serve has, as variables and as flags.
func TestDeployedSettingsExist(t *testing.T) {
	known := map[string]bool{}
	var s settings
	for _, section := range s.sections() {
		flags := pflag.NewFlagSet(section.title, pflag.ContinueOnError)
		section.register(flags)
		flags.VisitAll(func(f *pflag.Flag) { known[f.Name], known[environmentName(f.Name)] = true, true })
	}
	setting := regexp.MustCompile(`GLASSHOUSE_[A-Z_]+|"--[a-z-]+"`)
	forScripts := regexp.MustCompile(`GLASSHOUSE_PACKAGE_[A-Z]+`) // scripts/package reads them
	seen := 0
	for _, name := range []string{"Dockerfile", "compose.yaml", "deb/glasshouse.env", "systemd/glasshouse.service"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range setting.FindAllString(forScripts.ReplaceAllString(string(text), ""), -1) {
			seen++
			if !known[strings.TrimPrefix(strings.Trim(found, `"`), "--")] {
				t.Errorf("deploy/%s has %s, which is not a setting of serve", name, found)
			}
		}
	}
	if seen < 10 {
		t.Errorf("got %d settings in deploy, want at least 10", seen)
	}
}

// TestHealthcheckOfTheContainer runs the command of HEALTHCHECK with a service that runs, and without one.
func TestHealthcheckOfTheContainer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(text), "\\\n", "")
	var command []string
	_, rest, _ := strings.Cut(joined, "\nHEALTHCHECK ")
	_, rest, _ = strings.Cut(rest, " CMD ")
	rest, _, _ = strings.Cut(rest, "\n")
	if err := json.Unmarshal([]byte(rest), &command); err != nil {
		t.Fatalf("%s: %v", rest, err)
	}
	dir := dataDir(t)
	check := func() ([]byte, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "GLASSHOUSE_DATA_DIR="+dir, "http_proxy=http://127.0.0.1:1")
		return cmd.CombinedOutput()
	}
	if _, err := check(); err == nil {
		t.Error("without a service: got exit code 0, want another")
	}
	service, _ := start(t, binary(t), dir)
	if out, err := check(); err != nil {
		t.Errorf("got %v: %s, want 0 while the service is ready", err, out)
	}
	kill(service)
	if _, err := check(); err == nil {
		t.Error("after the service was killed: got exit code 0, want another")
	}
}

// TestContainerFilesAreWellFormed checks, without an engine, the syntax, the paths and the commands.
func TestContainerFilesAreWellFormed(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(root + "/deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Build   struct{ Context, Dockerfile string }
			Ports   []string
			Volumes []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	service := compose.Services["glasshouse"]
	dockerfile := filepath.Join(root, "deploy", service.Build.Context, service.Build.Dockerfile)
	if len(service.Ports) != 1 || !strings.HasPrefix(service.Ports[0], "127.0.0.1:") {
		t.Errorf("got ports %q, want one on loopback: keys cross it in clear text", service.Ports)
	}
	volume, folder, _ := strings.Cut(strings.Join(service.Volumes, " "), ":")
	if _, ok := compose.Volumes[volume]; !ok || folder != "/var/lib/glasshouse" {
		t.Errorf("got volumes %q, want the data folder on a named one", service.Volumes)
	}
	image, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatalf("build of compose.yaml: %v", err)
	}
	lines := strings.Split(strings.ReplaceAll(string(image), "\\\n", " "), "\n")
	for _, line := range lines {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "RUN":
			command := regexp.MustCompile(`^--mount=\S+ `).ReplaceAllString(rest, "")
			if out, err := exec.Command("sh", "-n", "-c", command).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", line, out)
			}
			if program := regexp.MustCompile(`scripts/\S+`).FindString(command); program != "" {
				if _, err := exec.LookPath(filepath.Join(root, program)); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		case "USER":
			if !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(rest) {
				t.Errorf("got the user %q, want numbers, which Kubernetes can compare (runAsNonRoot)", rest)
			}
		case "", "#", "FROM", "COPY", "WORKDIR", "ARG", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
			"ENTRYPOINT", "CMD":
		default:
			t.Errorf("got the instruction %q, want one of Dockerfile", line)
		}
	}
}

func TestVersionHasTheCommit(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{"version", "--version"} {
		out, err := exec.Command(binary(t), arguments).Output()
		if want := "glasshouse dev (commit " + testCommit + ")\n"; err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v, want %q", arguments, out, err, want)
		}
	}
}
