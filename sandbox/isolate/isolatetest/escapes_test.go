package isolatetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/supervisor"
)

// escape is one hostile program in escapes/. Its header names the attack and the layers that
// stop it. Each of these layers stops the program alone.
type escape struct {
	name, family, tries string
	invariant           int
	layers              []string
	policy              string   // changes of its sandbox's policy: key=value, ...
	proof               string   // how the test detects success: "" by the result "escaped"; else see succeeded
	needs               string   // feature of the machine without which the escape cannot succeed
	openOnImport        string   // why a package may do it when a zygote imports it; "" if it may not
	openOnLandlock      string   // why the level landlock does not stop it; "" if the level stops it
	parts               []string // programs that run one after the other
	neighbour           bool     // the second part runs in another sandbox
}

// Layers outside package isolate. A test leaves out a limit by setting it high, and the
// separation of sandboxes by running both parts in the same sandbox.
const (
	timeLimit        = "max_execution_time"
	outputLimit      = "max_output_size"
	separateSandbox  = "separate_sandbox"
	neighbourDivider = "\n# --- another sandbox\n"
)

var (
	headerPattern  = regexp.MustCompile(`^# (\w+): (.+)$`)
	dividerPattern = regexp.MustCompile(`\n# --- [a-z ]+\n`)
)

func readEscapes(t *testing.T) (all []escape) {
	t.Helper()
	files, err := fs.Glob(escapesFS, "escapes/[a-z]*.py")
	Must(t, err)
	for _, file := range files {
		text, err := escapesFS.ReadFile(file)
		Must(t, err)
		e := escape{name: strings.TrimSuffix(filepath.Base(file), ".py")}
		for line := range strings.SplitSeq(string(text), "\n") {
			header := headerPattern.FindStringSubmatch(line)
			if header == nil {
				break
			}
			switch value := header[2]; header[1] {
			case "family":
				e.family = value
			case "tries":
				e.tries = value
			case "invariant":
				e.invariant, err = strconv.Atoi(value)
				Must(t, err)
			case "layers":
				e.layers = strings.Split(value, ", ")
			case "policy":
				e.policy = value
			case "proof":
				e.proof = value
			case "import":
				e.openOnImport = value
			case "landlock":
				e.openOnLandlock = value
			case "needs":
				e.needs = value
			default:
				t.Fatalf("%s: unknown header %s", file, header[1])
			}
		}
		if e.family == "" || e.tries == "" || e.invariant < 1 || e.invariant > 16 || len(e.layers) == 0 {
			t.Fatalf("%s: its header must have family, tries, invariant (1 to 16) and layers", file)
		}
		e.neighbour = strings.Contains(string(text), neighbourDivider)
		for _, part := range dividerPattern.Split(string(text), 2) {
			if strings.Contains(part, "ctypes") || strings.Contains(part, "call(") {
				part = callPrelude() + "\n" + part
			}
			e.parts = append(e.parts, part)
		}
		all = append(all, e)
	}
	return all
}

// Modes of an attempt. Any other mode is the name of the only layer that is present.
const (
	allLayers      = "all layers"
	withoutCgroups = "without cgroups"
	onLandlock     = "level landlock"
	noLayer        = "none of them"
)

// attempt is one escape at one level, without some layers.
type attempt struct {
	escape  escape
	mode    string
	level   string
	without []string
}

// listAttempts returns the attempts that show that each layer stops an escape, and that
// it succeeds without all of them. With -short all layers are present in each attempt.
func listAttempts(escapes []escape) (list []attempt) {
	for _, e := range escapes {
		list = append(list, attempt{e, allLayers, "", nil})
		if testing.Short() {
			continue
		}
		list = append(list, attempt{e, noLayer, "", e.layers})
		// Without cgroups, the service enforces the same limits in another way.
		if !slices.Equal(e.layers, []string{string(layer.Cgroups)}) || e.openOnLandlock == "" {
			list = append(list, attempt{e, withoutCgroups, isolate.LevelWithoutCgroups, nil})
		}
		if e.openOnLandlock == "" {
			list = append(list, attempt{e, onLandlock, isolate.LevelLandlock, nil})
		}
		if len(e.layers) > 1 {
			for _, alone := range e.layers {
				others := slices.DeleteFunc(slices.Clone(e.layers), func(l string) bool { return l == alone })
				list = append(list, attempt{e, alone, "", others})
			}
		}
	}
	return list
}

// isolateLayers returns the layers of isolate that an attempt leaves out.
func (a attempt) isolateLayers() (layers layer.Set) {
	for _, name := range a.without {
		if name != timeLimit && name != outputLimit && name != separateSandbox {
			layers = append(layers, layer.Layer(name))
		}
	}
	if layers.Has(layer.User) && !layers.Has(layer.UID) {
		layers = append(
			layers,
			layer.Rlimits,
		) // even root may not be able to set the limits of another user of the machine
	}
	if a.escape.proof == "left" && layers.Has(layer.PID) {
		layers = append(layers, layer.Cgroups) // the folder of a group with a process in it can't be removed
	}
	slices.Sort(layers)
	return slices.Compact(layers)
}

func (a attempt) policy() (policy.Policy, error) {
	p := Policy()
	if slices.Contains(a.escape.layers, timeLimit) && !slices.Contains(a.without, timeLimit) {
		p.MaxExecutionTime = 1
	}
	if slices.Contains(a.without, outputLimit) {
		p.MaxOutputSize = 16 << 20
	}
	if a.escape.policy == "" {
		return p, nil
	}
	return p, json.Unmarshal([]byte(`{"`+strings.NewReplacer("=", `":`, ", ", `,"`).Replace(a.escape.policy)+`}`), &p)
}

// pauseBetweenRuns is the pause between the parts of an escape. The second part reports
// whether code of the first part ran during the pause.
const pauseBetweenRuns = 800 * time.Millisecond

// run runs the escape. It reports whether the escape succeeded, and how its run ended.
func (a attempt) run(i *isolate.Isolator, at *targets) (escaped bool, end string, err error) {
	at.restore()
	told, mark := map[string]any{}, Nonce()
	for k, v := range at.context {
		told[k] = v
	}
	told["nonce"] = mark
	given, err := json.Marshal(told)
	if err != nil {
		return false, "", err
	}
	pol, err := a.policy()
	if err != nil {
		return false, "", err
	}
	var sessions []*supervisor.Session
	closeAll := func() {
		for _, s := range sessions {
			s.Close()
		}
	}
	defer closeAll()
	var e sandbox.Outcome
	for n, part := range a.escape.parts {
		if n == 0 || a.escape.neighbour && !slices.Contains(a.without, separateSandbox) {
			s, err := OpenSession(i, pol, 20*time.Second)
			if err != nil {
				return false, "", err
			}
			sessions = append(sessions, s)
		} else if !a.escape.neighbour {
			time.Sleep(pauseBetweenRuns)
		}
		if e, err = RunWith(context.Background(), sessions[len(sessions)-1], part, given, Handler{}); err != nil {
			return false, "", err
		}
		if n == 0 && len(a.escape.parts) > 1 && e.Status != sandbox.StatusCompleted {
			break
		}
	}
	end = string(e.Status) + " " + Why(e)
	if a.escape.proof == "left" {
		closeAll()
	}
	return a.succeeded(e, at, mark), end, nil
}

// succeeded reports whether the escape had the effect that it tries, observed from outside
// the sandbox if possible.
func (a attempt) succeeded(e sandbox.Outcome, at *targets, mark string) bool {
	claimed := e.Status == sandbox.StatusCompleted && string(e.Result) == `"escaped"`
	wait := time.Duration(0)
	if claimed && a.mode == noLayer {
		wait = 20 * time.Second
	}
	switch a.escape.proof {
	case "":
		return claimed
	case "secret": // a program can print the secret only if it has read it
		return strings.Contains(string(e.Result), at.token)
	case "arrived":
		return at.hasReceived(mark, wait)
	case "signalled":
		return at.wasSignalled(wait)
	case "changed":
		body, _ := os.ReadFile(at.folder + "/target")
		_, err := os.Stat(at.folder + "/open/" + mark)
		return strings.Contains(string(body), mark) || err == nil
	case "left":
		return findProcess(mark[:15]) != 0
	case "printed":
		return strings.Contains(e.Stdout, mark)
	case "root":
		return strings.TrimSpace(e.Stdout) == "0"
	case "output":
		return len(e.Stdout) > 4<<20
	case "large":
		return len(e.Result) > 33<<20
	}
	panic("unknown proof " + a.escape.proof)
}

const (
	escapeWorkers  = 4  // more than the number of cores, because an attempt mostly waits for the kernel
	attemptsOfWork = 30 // attempts of one worker with one isolator
)

// Each escape fails against all layers and against each of its layers alone, and succeeds
// without all of them. This proves that each layer works, and that each program is an attack.
func TestEscapes(t *testing.T) {
	t.Parallel()
	if Level() != "" {
		return // the run for the strongest level tests all levels itself
	}
	token := os.Getenv(tokenVariable)
	python, err := filepath.EvalSymlinks(Python(t))
	Must(t, err)
	escapes := readEscapes(t)
	if len(escapes) < 60 {
		t.Errorf("escapes: got %d, want at least 60", len(escapes))
	}
	report := newEscapeReport()
	byIsolator := map[string][]attempt{} // one isolator serves all attempts with the same level and layers
	at := plantTargets(t, python, token)
	for _, a := range listAttempts(escapes) {
		if reason := cannotSucceed(a.escape, at); reason != "" {
			report.skip(a.escape.name, reason)
			continue
		}
		if slices.Contains(a.without, string(layer.User)) && os.Geteuid() != 0 {
			report.skip(a.escape.name+" ("+a.mode+")", "only root can do without a user namespace")
			continue
		}
		key := a.level + fmt.Sprint(a.isolateLayers())
		byIsolator[key] = append(byIsolator[key], a)
	}
	var workers sync.WaitGroup
	work := make(chan []attempt)
	for n := range escapeWorkers {
		own := at // of this worker: a signal to its process is of its attempt
		if n > 0 {
			own = plantTargets(t, python, token)
		}
		workers.Go(func() {
			for list := range work {
				runAttempts(t, list, own, report)
			}
		})
	}
	for _, list := range byIsolator {
		for chunk := range slices.Chunk(list, attemptsOfWork) {
			work <- chunk
		}
	}
	close(work)
	workers.Wait()
	report.print(t, escapes)
}

// runAttempts runs attempts with the same level and layers in one isolator.
func runAttempts(t *testing.T, list []attempt, at *targets, report *escapeReport) {
	i, err := isolate.Open(withDefaults(t, isolate.Config{Level: list[0].level, Without: list[0].isolateLayers()}))
	if err != nil {
		t.Errorf("open an isolator without %v: %v", list[0].isolateLayers(), err)
		return
	}
	defer i.Close()
	for _, a := range list {
		t.Run(a.escape.name+"/"+a.mode, func(t *testing.T) {
			escaped, end, err := a.run(i, at)
			if err != nil {
				t.Fatal(err)
			}
			report.add(a, escaped)
			if want := a.mode == noLayer; escaped != want {
				t.Errorf("the program, which tries %s, got escaped %v, want %v; its run ended: %s",
					a.escape.tries, escaped, want, end)
			}
		})
	}
}
