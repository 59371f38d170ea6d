package main

import (
	"math"
	"strings"
	"testing"

	"glasshouse/sandbox/isolate"
)

// bigMachine has room for all default settings.
var bigMachine = isolate.Capacity{
	Descriptors: 20_000, Tasks: 30_000, Namespaces: 90_000, Networks: 90_000, MemoryBytes: 24 << 30,
}

func defaultLimits() *settings {
	s := &settings{}
	s.limits.sandboxes, s.limits.parallel, s.limits.queries.each, s.python.pool = 200, 32, 16, 8
	return s
}

// TestSettingsAreLoweredToTheMachine has the settings that do not fit, for each thing that can be scarce.
func TestSettingsAreLoweredToTheMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*isolate.Capacity)
		want   []string // the beginning of each line
		text   string   // in the last line
	}{
		"a big machine":    {func(*isolate.Capacity) {}, nil, ""},
		"4096 descriptors": {func(c *isolate.Capacity) { c.Descriptors = 4096 }, nil, ""},
		"unlimited": {
			func(c *isolate.Capacity) {
				c.Tasks, c.Namespaces, c.Networks = math.MaxInt, math.MaxInt, math.MaxInt
			}, nil, "",
		},
		"few processes":  {func(c *isolate.Capacity) { c.Tasks = 250 }, []string{"--max-sandboxes is "}, "TasksMax"},
		"few namespaces": {func(c *isolate.Capacity) { c.Namespaces = 150 }, []string{"--max-sandboxes is"}, "user.max_"},
		"memory":         {func(c *isolate.Capacity) { c.MemoryBytes = 600 << 20 }, []string{"--max"}, "memory"},
		"few networks":   {func(c *isolate.Capacity) { c.Networks = 7 }, []string{"only 7"}, "net"},
		"1024 descriptors": {
			func(c *isolate.Capacity) { c.Descriptors = 1024 },
			[]string{"--parallel is 16 instead of 32", "--max-sandboxes is "}, "LimitNOFILE",
		},
		"256 descriptors": {
			func(c *isolate.Capacity) { c.Descriptors = 256 },
			[]string{"--parallel is 4 instead of 32", "--max-queries is 4 instead of 16", "--pool is 2 instead of 8",
				"--max-sandboxes is "}, "LimitNOFILE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			capacity, s := bigMachine, defaultLimits()
			c.change(&capacity)
			p, lines, err := s.makePlan(capacity)
			if err != nil {
				t.Fatal(err)
			}
			if len(lines) != len(c.want) {
				t.Fatalf("got lines\n%s\nwant %d", strings.Join(lines, "\n"), len(c.want))
			}
			for n, want := range c.want {
				if !strings.HasPrefix(lines[n], want) || strings.Contains(lines[n], "\n") {
					t.Errorf("line %d: got %q, want one that begins with %q", n+1, lines[n], want)
				}
			}
			if n := len(lines); n > 0 && !strings.Contains(lines[n-1], c.text) {
				t.Errorf("got %q, want the remedy with %q", lines[n-1], c.text)
			}
			if min(s.limits.sandboxes, s.limits.parallel, s.python.pool, p.openIdle) < 1 || p.connections < 20 {
				t.Errorf("got %+v and %+v, want room for everything", s.limits, p)
			}
			// All parts together fit below the limit, whatever clients do.
			waiting := 0
			for _, set := range p.warmSets {
				waiting += max(set.Pool, 2) + 1
			}
			total := ownDescriptors + s.limits.queries.each + waiting*waitingDescriptors +
				s.limits.sandboxes*idleDescriptors + (s.limits.parallel+p.openIdle)*openDescriptors + p.reserve
			if total > capacity.Descriptors {
				t.Errorf("the parts need %d descriptors, and there are %d", total, capacity.Descriptors)
			}
		})
	}
}

func TestMachineWithoutRoomIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*isolate.Capacity){
		"file descriptors": func(c *isolate.Capacity) { c.Descriptors = 128 },
		"processes":        func(c *isolate.Capacity) { c.Tasks = 100 },
		"namespaces":       func(c *isolate.Capacity) { c.Namespaces = 20 },
		"memory":           func(c *isolate.Capacity) { c.MemoryBytes = 256 << 20 },
	} {
		capacity := bigMachine
		change(&capacity)
		_, _, err := defaultLimits().makePlan(capacity)
		if err == nil || !strings.Contains(err.Error(), "no room") || !strings.Contains(err.Error(), name) {
			t.Errorf("few %s: got %v, want an error that there is no room", name, err)
		}
	}
}

// TestManySandboxesFit has the number of live sandboxes that the project wants on 20 000 descriptors.
func TestManySandboxesFit(t *testing.T) {
	t.Parallel()
	s := defaultLimits()
	s.limits.sandboxes = 5000
	if _, lines, err := s.makePlan(bigMachine); err != nil || len(lines) > 0 {
		t.Errorf("got %q, %v; want no line", lines, err)
	}
}
