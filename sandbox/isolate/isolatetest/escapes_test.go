package isolatetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// escape is one program of escapes/: what it tries, and which walls stop it, each
// on its own. It has escaped where its proof holds.
type escape struct {
	name, family, tries string
	invariant           int
	walls               []string
	policy              string // what its sandbox asks for: key=value, ...
	proof               string // "": it says so, which is its result; else see escaped
	needs               string // what the machine must have, so that it can succeed
	open                string // why the level landlock does not hold it; "" where it does
	parts               []string
	neighbour           bool // the second part runs in another sandbox
}

// Walls that are not isolate's: a limit of the policy, and that each sandbox has a
// process of its own. Left out, the limit is far off, and the sandbox is the same.
const (
	wallTime   = "max_execution_time"
	wallOutput = "max_output_size"
	wallApart  = "apart"
)

var header = regexp.MustCompile(`^# (\w+): (.+)$`)

func readEscapes(t *testing.T) []escape {
	t.Helper()
	prelude, err := os.ReadFile("escapes/_prelude.py")
	must(t, err)
	files, _ := filepath.Glob("escapes/[a-z]*.py")
	var all []escape
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		e := escape{name: strings.TrimSuffix(filepath.Base(file), ".py")}
		for _, line := range strings.Split(string(text), "\n") {
			m := header.FindStringSubmatch(line)
			if m == nil {
				break
			}
			switch m[1] {
			case "family":
				e.family = m[2]
			case "tries":
				e.tries = m[2]
			case "invariant":
				e.invariant, err = strconv.Atoi(m[2])
				must(t, err)
			case "walls":
				e.walls = strings.Split(m[2], ", ")
			case "policy":
				e.policy = m[2]
			case "proof":
				e.proof = m[2]
			case "landlock":
				e.open = m[2]
			case "needs":
				e.needs = m[2]
			default:
				t.Fatalf("%s: unknown header %s", file, m[1])
			}
		}
		if e.family == "" || e.tries == "" || e.invariant < 1 || e.invariant > 16 || len(e.walls) == 0 {
			t.Fatalf("%s: its header must have family, tries, invariant and walls", file)
		}
		e.neighbour = strings.Contains(string(text), "\n# --- another sandbox\n")
		for _, part := range regexp.MustCompile(`\n# --- [a-z ]+\n`).Split(string(text), 2) {
			if strings.Contains(part, "ctypes") || strings.Contains(part, "call(") {
				part = string(prelude) + "\n" + part
			}
			e.parts = append(e.parts, part)
		}
		all = append(all, e)
	}
	return all
}

// attempt is one escape against a wall: the level, and what is left out.
type attempt struct {
	escape escape
	mode   string // "all on", "without cgroups", "level landlock", "all out", or the one wall that stands
	level  string
	out    []string
}

func attempts(all []escape) (list []attempt) {
	for _, e := range all {
		list = append(list, attempt{e, "all on", "", nil})
		if !slices.Equal(e.walls, []string{string(layer.Cgroups)}) {
			list = append(list, attempt{e, "without cgroups", isolate.LevelWithoutCgroups, nil})
		}
		if e.open == "" {
			list = append(list, attempt{e, "level landlock", isolate.LevelLandlock, nil})
		}
		if len(e.walls) > 1 {
			for _, alone := range e.walls {
				others := slices.DeleteFunc(slices.Clone(e.walls), func(w string) bool { return w == alone })
				list = append(list, attempt{e, alone, "", others})
			}
		}
		list = append(list, attempt{e, "all out", "", e.walls})
	}
	return list
}

// left are isolate's own among the walls that an attempt leaves out.
func (a attempt) left() (walls []layer.Layer) {
	for _, name := range a.out {
		if name != wallTime && name != wallOutput && name != wallApart {
			walls = append(walls, layer.Layer(name))
		}
	}
	if slices.Contains(walls, layer.User) && !slices.Contains(walls, layer.UID) {
		walls = append(walls, layer.Rlimits) // of another user of the host, whose limits even root may not be able to set
	}
	if a.escape.proof == "left" && slices.Contains(walls, layer.PID) {
		walls = append(walls, layer.Cgroups) // whose folder couldn't be removed
	}
	slices.Sort(walls)
	return slices.Compact(walls)
}

func (a attempt) policy() (policy.Policy, error) {
	p := policy.Default()
	p.Profile, p.CPUPercent, p.MaxExecutionTime = policy.ProfileUnrestricted, 200, 20
	if slices.Contains(a.escape.walls, wallTime) && !slices.Contains(a.out, wallTime) {
		p.MaxExecutionTime = 1
	}
	if slices.Contains(a.out, wallOutput) {
		p.MaxOutputSize = 16 << 20
	}
	if a.escape.policy == "" {
		return p, nil
	}
	return p, json.Unmarshal([]byte(`{"`+strings.NewReplacer("=", `":`, ", ", `,"`).Replace(a.escape.policy)+`}`), &p)
}

// stillness is for how long a sandbox is watched between its runs.
const stillness = 400 * time.Millisecond

// run lets the escape try, and says whether it got through, and how it ended.
func (a attempt) run(i *isolate.Isolator, at *targets) (escaped bool, how string, err error) {
	at.refresh()
	told, mark := map[string]any{}, nonce()
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
	over := func() (err error) {
		for _, s := range sessions {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	defer func() { err = errors.Join(err, over()) }()
	var e sandbox.Outcome
	for n, part := range a.escape.parts {
		if n == 0 || a.escape.neighbour && !slices.Contains(a.out, wallApart) {
			s, err := supervisor.New(i, 20*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: pol}, "")
			if err != nil {
				return false, "", err
			}
			sessions = append(sessions, s)
		} else if !a.escape.neighbour {
			time.Sleep(stillness) // in which nothing may happen
		}
		request := supervisor.Request{ExecutionID: "e", Code: part, Context: given}
		if e, err = sessions[len(sessions)-1].Run(context.Background(), request, supervisor.Callbacks{Requests: deaf{}}); err != nil {
			return false, "", err
		}
		if n == 0 && len(a.escape.parts) > 1 && e.Status != sandbox.StatusCompleted {
			break
		}
	}
	how = string(e.Status)
	if e.Error != nil {
		how += ": " + *e.Error
	}
	if a.escape.proof == "left" {
		if err := over(); err != nil {
			return false, "", err
		}
	}
	return a.proven(e, at, mark), how, nil
}

// proven looks at what the escape is to have done, from outside where that can be.
func (a attempt) proven(e sandbox.Outcome, at *targets, mark string) bool {
	said := e.Status == sandbox.StatusCompleted && string(e.Result) == `"escaped"`
	patience := time.Duration(0)
	if said && a.mode == "all out" {
		patience = 3 * time.Second
	}
	switch a.escape.proof {
	case "":
		return said
	case "secret": // only who has read it can say it
		return strings.Contains(string(e.Result), at.token)
	case "arrived":
		return at.came(mark, patience)
	case "signalled":
		return at.signalled(patience)
	case "changed":
		body, _ := os.ReadFile(at.folder + "/target")
		_, err := os.Stat(at.folder + "/open/" + mark)
		return strings.Contains(string(body), mark) || err == nil
	case "left":
		return running(mark[:15])
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

// running says whether a process that calls itself name is there.
func running(name string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if comm, _ := os.ReadFile(file); strings.TrimSpace(string(comm)) == name {
			return true
		}
	}
	return false
}

// Every escape fails against all walls and against each of its walls alone, and
// succeeds where none of them stands: so each wall is known to hold, and each
// program to be an attack.
func TestEscapes(t *testing.T) {
	if os.Getenv(levelKey) != "" {
		return // it goes through the levels itself
	}
	token := "gh-token-" + nonce()
	t.Setenv("GLASSHOUSE_ESCAPE_TOKEN", token)
	python, err := filepath.EvalSymlinks(os.Getenv("GLASSHOUSE_PYTHON"))
	must(t, err)
	all := readEscapes(t)
	if len(all) < 60 {
		t.Errorf("%d escapes; 60 are promised", len(all))
	}
	results := newTally()
	byWall := map[string][]attempt{} // one raised wall serves all attempts against it
	at := plant(t, python, token)
	for _, a := range attempts(all) {
		if why := missing(a.escape, at); why != "" {
			results.skip(a.escape.name, why)
			continue
		}
		if slices.Contains(a.out, "user") && os.Geteuid() != 0 {
			results.skip(a.escape.name+" ("+a.mode+")", "only root can do without a user namespace")
			continue
		}
		key := a.level + fmt.Sprint(a.left())
		byWall[key] = append(byWall[key], a)
	}
	var work sync.WaitGroup
	next := make(chan []attempt)
	for n := range 4 { // more than cores: most of it is waiting for the kernel
		if n > 0 {
			at = plant(t, python, token)
		}
		work.Add(1)
		go func(at *targets) {
			defer work.Done()
			for list := range next {
				against(t, list, at, results)
			}
		}(at)
	}
	for _, list := range byWall {
		for chunk := range slices.Chunk(list, 30) {
			next <- chunk
		}
	}
	close(next)
	work.Wait()
	results.print(t, all)
}

// against raises one wall and runs the attempts against it.
func against(t *testing.T, list []attempt, at *targets, results *tally) {
	i, err := isolate.Open(isolate.Config{
		Python: os.Getenv("GLASSHOUSE_PYTHON"), WarmSets: []isolate.WarmSet{{Name: "bare", Modules: []string{}, Pool: 1}},
		DefaultPolicy: policy.Default(), Level: list[0].level, Without: list[0].left(), Log: func(string, ...any) {},
	})
	if err != nil {
		t.Errorf("raise the wall without %v: %v", list[0].left(), err)
		return
	}
	defer i.Close()
	for _, a := range list {
		escaped, how, err := a.run(i, at)
		if err != nil {
			t.Errorf("%s, %s: %v", a.escape.name, a.mode, err)
			continue
		}
		results.note(a, escaped)
		if escaped != (a.mode == "all out") {
			t.Errorf("%s (%s), %s: escaped is %v; %s", a.escape.name, a.escape.tries, a.mode, escaped, how)
		}
	}
}
