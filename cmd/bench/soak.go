package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hostile are programs that a wall must outlive; each must come back as an
// execution, whatever its status. They run without import rules.
var hostile = []string{
	"import os\nos._exit(3)",
	"import os\nwhile True: os.fork()",
	"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
	"x = []\nwhile True: x.append(bytearray(1 << 20))",
	"while True: pass",
	"print('x' * (30 << 20))",
	"import os\nheld = []\nwhile True: held.append(os.open('/dev/null', os.O_RDONLY))",
	"import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
	"f = open('/session/full', 'wb')\nwhile True: f.write(bytes(1 << 20))",
	"import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4096)\n    except OSError: pass",
	"import sys\nsys.setrecursionlimit(10 ** 8)\ndef f(): f()\nf()",
	"import os\nfor n in range(10 ** 6): open(f'/tmp/{n}', 'w').close()",
}

// holdings is what the service and its children hold of the machine.
type holdings struct {
	memoryMB                          float64 // resident, of the service alone
	files, processes, cgroups, mounts int
}

func (s *service) holdings() holdings {
	pid := s.cmd.Process.Pid
	var h holdings
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/status", pid))) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			h.memoryMB = float64(kb) / 1024
		}
	}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	h.files, h.processes = len(fds), s.all()
	h.mounts = strings.Count(readText(fmt.Sprintf("/proc/%d/mounts", pid)), "\n")
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, fmt.Sprintf("glasshouse-%d", pid)) {
			h.cgroups++
		}
		return nil
	})
	return h
}

func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// settled waits until the pool is full again, as far as its number of processes tells.
func (s *service) settled() holdings {
	last, same := s.all(), 0
	for end := time.Now().Add(20 * time.Second); same < 10 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		now := s.all()
		same++
		if now != last {
			last, same = now, 0
		}
	}
	return s.holdings()
}

// soak runs many short executions, one in fifty of them hostile, and compares what
// the service holds after a tenth of them with what it holds at the end.
func (b *bench) soak(ctx context.Context, s *service) {
	const clients = 8
	name := fmt.Sprintf("soak of %d runs", b.size.soak)
	b.inSandboxes(ctx, clients, name, nil, func(ids []string) {
		progress("%s: the first tenth", name)
		wrong, examples := b.client.soak(ctx, 0, b.size.soak/10, ids)
		before := s.settled()
		progress("%s: the rest; so far the service holds %+v", name, before)
		more, others := b.client.soak(ctx, b.size.soak/10, b.size.soak, ids)
		after := s.settled()
		r := row{Name: name + ": wrong answers", Value: fmt.Sprint(wrong + more), Goal: "0", Met: new(wrong+more == 0 && ctx.Err() == nil)}
		if examples = append(examples, others...); len(examples) > 0 {
			r.Note = fmt.Sprintf("such as: %.600v", examples)
		}
		b.report.add(r)
		flat := func(what string, was, is, slack float64) {
			b.report.add(row{Name: what + ", after a tenth and at the end", Value: fmt.Sprintf("%.0f, %.0f", was, is), Goal: "flat", Met: new(is <= was+slack)})
		}
		flat("memory of the service, MB", before.memoryMB, after.memoryMB, max(16, before.memoryMB/4))
		flat("descriptors of the service", float64(before.files), float64(after.files), 16)
		flat("processes", float64(before.processes), float64(after.processes), 16)  // connections to the database come and go
		flat("control groups", float64(before.cgroups), float64(after.cgroups), 36) // eight triples of them are kept for the next children, or fewer
		flat("mounts", float64(before.mounts), float64(after.mounts), 0)
	})
}

// soak makes the runs from begin to end, a client for each sandbox, and returns
// how many came back wrong, with some examples.
func (c *client) soak(ctx context.Context, begin, end int, ids []string) (wrong int, examples []string) {
	var next atomic.Int64
	next.Store(int64(begin))
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client, id := range ids {
		clients.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= end {
					return
				}
				if i%10_000 == 0 {
					progress("soak: run %d", i)
				}
				if err := c.soakRun(ctx, i, client, id); err != nil && ctx.Err() == nil {
					mu.Lock()
					wrong++
					if len(examples) < maxExamples {
						examples = append(examples, err.Error())
					}
					mu.Unlock()
				}
			}
		})
	}
	clients.Wait()
	return wrong, examples
}

func (c *client) soakRun(ctx context.Context, i, client int, id string) error {
	if i%50 == 49 {
		code := hostile[i/50%len(hostile)]
		var e execution
		err := c.do(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code,
			"config": map[string]any{"profile": "unrestricted", "max_execution_time": 1}}, &e)
		if err == nil && e.Status == "running" {
			err = fmt.Errorf("a hostile run came back as running: %.60q", code)
		}
		return err
	}
	mark := fmt.Sprintf("run-%d-client-%d", i, client)
	given := map[string]any{"mark": mark}
	switch i % 3 {
	case 0:
		return expect{status: "completed", stdout: mark + "\n"}.check(c.quick(ctx, "print(mark)", given))
	case 1:
		return expect{status: "completed", result: fmt.Sprintf("%q", mark)}.check(c.execute(ctx, id, "mark", given))
	default:
		return expect{status: "failed", stdout: mark + "\n", errorHas: "ZeroDivisionError"}.check(c.execute(ctx, id, "print(mark)\n1 / 0", given))
	}
}
