//go:build nightly

package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	maxAmplifiedBytes = 10 << 10
	maxRequestCPU     = time.Second
	maxRequestMemory  = 256 << 20 // bytes
	clockTick         = 10 * time.Millisecond
)

// amplifier is a route that takes a text from a user.
type amplifier struct {
	name     string
	seeds    []string
	maxBytes int // 0: maxAmplifiedBytes
	send     func(ctx context.Context, text string) error

	corpus []string // texts that cost more than those before
	most   float64  // the cost of the last one, as a part of the limits
}

// TestNoTextCostsMuch looks for requests of at most 10 KiB that cost the service and its parsers more than 1 s of CPU
// time or 256 MiB of memory. GLASSHOUSE_TEST_FUZZTIME sets how long it looks, such as 1h; the default is a minute. It
// mutates the texts that cost most so far, and reports the shortest text that costs too much.
func TestNoTextCostsMuch(t *testing.T) {
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("GLASSHOUSE_TEST_FUZZTIME"), "1m"))
	if err != nil {
		t.Fatal(err)
	}
	nemo, setting := reserveCompat(t)
	cmd, c := start(t, binary(t), dataDir(t), withPackages(), "--key-requests", "0",
		"--compat", "e2b,jupyter,librechat,"+strings.TrimPrefix(setting, "GLASSHOUSE_COMPAT="))
	service := serviceProcess{cmd.Process.Pid}
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	creator := c.newUser(t, "creator")
	targets, texts := amplifiers(t, c)
	for _, target := range targets {
		if err := target.send(t.Context(), target.seeds[0]); err != nil {
			t.Fatalf("%s refuses its first text: %v", target.name, err)
		}
	}
	routes := append(routeAmplifiers(t, c, creator, texts), compatAmplifiers(t, c, creator, nemo, texts)...)
	for _, target := range routes {
		if err := target.refused(t.Context()); err != nil {
			t.Logf("%s refuses all its seeds: %.200s", target.name, err)
		}
	}
	worst, where := "", (*amplifier)(nil)
	tried := 0
	for end := time.Now().Add(duration); time.Now().Before(end); tried++ {
		target := routes[random.IntN(len(routes))]
		if tried%2 == 0 { // the routes with parsers
			target = targets[random.IntN(len(targets))]
		}
		if tried%50 == 0 { // a user may have that many sandboxes
			_ = creator.call(t.Context(), "POST", "/sandbox/cleanup-all", nil, &map[string]any{})
		}
		text := target.mutate(random)
		cost := service.cost(t, target, text)
		if cost >= 1 && service.cost(t, target, text) >= 1 { // the first may have collected the garbage of others
			text = service.shorten(t, target, text)
			if worst == "" || len(text) < len(worst) {
				worst, where = text, target
			}
		} else if cost > target.most || len(target.corpus) < len(target.seeds) {
			target.corpus, target.most = append(target.corpus, text), max(cost, target.most)
		}
	}
	t.Logf("sent %d texts", tried)
	for _, target := range append(targets, routes...) {
		if target.most < 0.05 {
			continue
		}
		t.Logf("%s: at most %.0f %% of the limits", target.name, 100*target.most)
	}
	if worst != "" {
		t.Errorf("%s: a text of %d bytes costs more than %s of CPU time or %d MiB:\n%s",
			where.name, len(worst), maxRequestCPU, maxRequestMemory>>20, worst)
	}
	stop(t, cmd)
}

// amplifiers returns the routes with parsers and texts that have cost much before. It also returns a text of each of
// these languages, and the identifiers of a sandbox and of an execution, by the names of the fields that take them.
func amplifiers(t *testing.T, c *client) (targets []*amplifier, texts map[string]string) {
	t.Helper()
	post := func(path, field string) func(context.Context, string) error {
		return func(ctx context.Context, text string) error {
			return c.call(ctx, "POST", path, map[string]any{field: text}, &map[string]any{})
		}
	}
	get := func(path string) func(context.Context, string) error {
		return func(ctx context.Context, text string) error {
			return c.call(ctx, "GET", path+url.QueryEscape(text), nil, &map[string]any{})
		}
	}
	const day = 24 * 60 * 60
	sandbox := c.newSandbox(t, map[string]any{"max_execution_time": 1, "lifetime": day, "idle_timeout": day,
		"enable_debugging": true, "enable_file_access": true})
	recorded := c.must(t, "POST", "/sandbox/"+c.newSandbox(t, nil)+"/execute", map[string]any{
		"code":   "n, text, items = 2 ** 1000, 'ab' * 500, list(range(100))\nfor i in range(500):\n    x = i",
		"record": true})
	sql := []string{
		"SELECT u.id, u.name FROM users u, users v WHERE u.id = v.id",
		"WITH a AS (SELECT 1 AS x), b AS (SELECT a.*, c.* FROM a, a c) SELECT * FROM b",
		"WITH RECURSIVE a AS (SELECT 1 AS n UNION SELECT n + 1 FROM a WHERE n < 9) SELECT * FROM (SELECT * FROM a) q",
		"SELECT q.name, q.id FROM (SELECT id, name FROM users) q(id, name) GROUP BY q.id, q.name",
		"SELECT ((u)).name, (u.address).street FROM users AS u JOIN users w USING (id) TABLESAMPLE BERNOULLI (1)",
		"SELECT CASE WHEN 1 = 1 THEN ARRAY[1, 2][1] ELSE -1 END, 'text' || E'\\n' /* c */ -- d",
		"SELECT usrs, lenght(nam) FROM usrs WHERE naem = :name AND x IN (1, 2, 3) OR NOT x::int BETWEEN 1 AND 2",
		"SELECT (SELECT (SELECT 1)), EXISTS (SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3)",
	}
	python := []string{
		"import os, sys\nfrom a.b import c as d, e\nos.path.join('a', \"b\")[1:2]",
		"def f(a, *b, c=1, **d):\n    return [x for x in a if x not in b] or {1: (2, 3)}",
		"f'{a!r:>{b}} {f\"{c}\"}' '''x''' rb'\\x00' \\\n + 1_000.5e3j",
		"%time x\n!ls -l\nx?? ; @d\nlambda: (yield) == -~not_a_name",
		"class A(B):\n    match = {**a, 'b': [1, 2]}\n    try: pass\n    except (A, B): raise",
	}
	words := []string{"SELECT", "%_%a\\", "'; --", "é"}
	conditions := []string{
		"n * n // 3 % 7 == 1 and x > 2", "text in text and text + text != 'ab'", "items == items or items[0] in [1, 2]",
		"len(text) - abs(-n) <= 10 ** 3", "not (x is None) and 0 < x < 9",
	}
	id := fmt.Sprint(recorded["execution_id"])
	artifacts := c.must(t, "POST", "/sandbox/"+sandbox+"/execute", map[string]any{
		"code": "open('/session/artifacts/a.txt', 'w').write('x')"})["artifacts"].([]any)
	session := c.must(t, "POST", "/sandbox/"+c.newSandbox(t, map[string]any{"enable_debugging": true, "lifetime": day,
		"idle_timeout": day})+"/debug/sessions", map[string]any{"code": "x = 1\nx = 2",
		"stop_on_entry": true})
	texts = map[string]string{
		"{aid}": fmt.Sprint(field(artifacts[0], "artifact_id")), "{sid}": fmt.Sprint(session["session_id"]),
		"{step}": "9", "{ref}": "1", "{command}": "evaluate", "{path}": "x", "budget": "100", "database": "knowledge",
		"code": python[1], "query": sql[0], "sql": sql[0], "condition": conditions[0], "sandbox": sandbox,
		"execution": id, "sandbox_id": sandbox, "session_id": sandbox, "execution_id": id, "name": "x",
	}
	return []*amplifier{
		{name: "query", seeds: sql, send: post("/database/query", "query")},
		{name: "execute", seeds: python, send: post("/sandbox/"+sandbox+"/execute", "code")},
		{name: "check", seeds: python, send: post("/sandbox/"+sandbox+"/check", "code")},
		{name: "check with config", seeds: python, send: post("/sandbox/check", "code")},
		{name: "complete", seeds: python, send: post("/sandbox/"+sandbox+"/complete", "code")},
		{name: "highlight", seeds: python, send: post("/sandbox/highlight", "code")},
		{name: "history", seeds: words, maxBytes: 200, send: get("/executions?text=")},
		{name: "condition", seeds: conditions, maxBytes: 2000, send: get("/executions/" + id + "/find?condition=")},
	}, texts
}

// pieces matches the tokens of SQL and of Python, and white space.
var pieces = regexp.MustCompile(`\pL[\pL\pN_]*|\pN+|\s+|.`)

// mutate returns a text with one to four mutations: a token or a list item is repeated, a part is put in brackets or a
// query, or a name becomes longer.
func (a *amplifier) mutate(random *rand.Rand) string {
	text := a.seeds[random.IntN(len(a.seeds))]
	if len(a.corpus) > 0 && random.IntN(3) > 0 {
		text = a.corpus[len(a.corpus)-1-random.IntN(min(len(a.corpus), 8))]
	}
	for range 1 + random.IntN(4) {
		tokens := pieces.FindAllString(text, -1)
		if len(tokens) == 0 {
			break
		}
		at := random.IntN(len(tokens))
		times := 1 << random.IntN(11)
		switch random.IntN(6) {
		case 0: // repeat a token
			tokens[at] = strings.Repeat(tokens[at], times)
		case 1: // nest a part in brackets or a query
			end := at + 1 + random.IntN(len(tokens)-at)
			frame := [][2]string{{"(", ")"}, {"[", "]"}, {"{", "}"}, {"(SELECT ", ")"}, {"(SELECT * FROM (", ") q)"},
				{"f'{", "}'"}, {"-", ""}, {"not ", ""}, {"/*", "*/"}, {`{"a":`, "}"}}[random.IntN(10)]
			tokens[at] = strings.Repeat(frame[0], times) + tokens[at]
			tokens[end-1] += strings.Repeat(frame[1], times)
		case 2: // lengthen a name
			tokens[at] += strings.Repeat("x", times)
		case 3: // repeat a part as items of a list, each with a name of its own
			end := at + 1 + random.IntN(len(tokens)-at)
			part := strings.Join(tokens[at:end], "")
			items := make([]string, times)
			for i := range items {
				items[i] = part + strconv.Itoa(i)
			}
			tokens[at] = strings.Join(items, ", ") + ", " + tokens[at]
		case 4: // repeat a part
			end := at + 1 + random.IntN(len(tokens)-at)
			tokens[at] = strings.Repeat(strings.Join(tokens[at:end], "")+" ", times) + tokens[at]
		default: // take a part out
			end := at + 1 + random.IntN(min(8, len(tokens)-at))
			tokens = append(tokens[:at], tokens[end:]...)
		}
		if next := strings.Join(tokens, ""); len(next) <= cmp.Or(a.maxBytes, maxAmplifiedBytes) {
			text = next
		}
	}
	return text
}

// serviceProcess measures a service by its process number.
type serviceProcess struct{ pid int }

// cost sends a text and returns what it costs the service and its parsers, as a part of the limits.
func (s serviceProcess) cost(t *testing.T, a *amplifier, text string) float64 {
	t.Helper()
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0) // the peak begins at the current size
	memory, cpu := s.peakMemory(), s.cpuTime()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = a.send(ctx, text) // most texts are refused
	if ctx.Err() != nil {
		t.Errorf("%s: a text of %d bytes has no answer after a minute: %.2000s", a.name, len(text), text)
	}
	return max(float64(s.cpuTime()-cpu)/float64(maxRequestCPU), float64(s.peakMemory()-memory)/maxRequestMemory)
}

// shorten returns a shorter text that still costs too much, if it finds one. It sends at most some 60 texts.
func (s serviceProcess) shorten(t *testing.T, a *amplifier, text string) string {
	t.Helper()
	for size := len(text) / 2; size > len(text)/32; size /= 2 {
		for at := 0; at+size <= len(text); at += size {
			if less := strings.ToValidUTF8(text[:at]+text[at+size:], ""); s.cost(t, a, less) >= 1 {
				text = less
			}
		}
	}
	return text
}

// cpuTime returns the CPU time of the service and of its children that run the same program, which parse.
func (s serviceProcess) cpuTime() (used time.Duration) {
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.pid))
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after) // from the state on
		if len(fields) < 13 {
			continue
		}
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if own, _ := os.Readlink(filepath.Join(filepath.Dir(path), "exe")); own != program ||
			number != s.pid && fields[1] != strconv.Itoa(s.pid) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used += time.Duration(user+system) * clockTick
	}
	return used
}

// peakMemory returns the largest resident size of the service, in bytes.
func (s serviceProcess) peakMemory() (size int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	if fields := strings.Fields(after); len(fields) > 0 {
		size, _ = strconv.Atoi(fields[0])
	}
	return size << 10
}
