package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/inputlog"
)

// archivedHistory is a store with a blob store, for exports and imports.
type archivedHistory struct {
	*testStore
	blobs    *blob.Store
	blobsDir string
}

func newArchivedHistory(t *testing.T) archivedHistory {
	t.Helper()
	dir := t.TempDir()
	blobs, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	return archivedHistory{newStore(t), blobs, dir}
}

// fill stores executions of ada and grace, a minute apart, each with statements, a connection, a recording of two
// chunks, an empty file and one of several pieces.
func (h archivedHistory) fill(t *testing.T, count int) (base time.Time) {
	t.Helper()
	ctx := context.Background()
	base = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for n := range count {
		id, user, at := fmt.Sprintf("e%02d", n), []string{"ada", "grace"}[n%2], base.Add(time.Duration(n)*time.Minute)
		e := reviewed(id, user, at, 2)
		e.Stdout = "bytes \xff\x00 and text " + id
		e.Artifacts = nil
		if n == 1 {
			e.ExpiresAt = new(at.AddDate(0, 0, 30))
		}
		box := sandbox.Sandbox{ID: e.SandboxID, Owner: user, State: sandbox.StateActive, CreatedAt: at}
		if err := h.CreateSandbox(ctx, box); err != nil {
			t.Fatal(err)
		}
		h.finish(t, e, sandbox.StatusCompleted)
		for sequence := range 2 {
			c := sandbox.Chunk{Sequence: sequence, First: sequence + 1, Last: sequence + 1,
				Definitions: []byte{1, 0, 255},
				Index:       []byte("index"), Data: []byte(id)}
			if err := h.KeepChunk(ctx, id, c); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.KeepInputs(ctx, &sandbox.Execution{ID: id}, encodedLog(t, id)); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{
			"empty": "", "large": strings.Repeat(id, archivePiece), "same": "of all",
		} {
			a, err := h.blobs.Put(name, strings.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			a.ID, a.ExecutionID, a.SandboxID, a.User, a.CreatedAt = name+"-"+id, id, e.SandboxID, user, at
			a.Folder, a.Path = "sessions/"+e.SandboxID+"/artifacts", name
			if err := h.KeepArtifacts(ctx, []sandbox.Artifact{a}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.writer.waitInserted(ctx, scope{}); err != nil {
		t.Fatal(err)
	}
	return base
}

// encodedLog returns an input log with one answer.
func encodedLog(t *testing.T, answer string) []byte {
	t.Helper()
	keys, err := inputlog.NewKeys([]byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	r := keys.Record(inputlog.Rows)
	r.Begin([]byte(`{"what": "query", "sql": "SELECT 1"}`))
	r.Add(len(answer), func() []byte { return []byte(answer) })
	encoded, err := r.End(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// checkAnyChunk refuses the chunk of TestBadArchivesAreRefused: the recordings of these tests are not real.
func checkAnyChunk(c sandbox.Chunk) error {
	if string(c.Data) == "forged" {
		return errForged
	}
	return nil
}

var errForged = errors.New("the chunk is forged")

func (h archivedHistory) export(t *testing.T, f ExportFilter) (string, ArchiveCounts) {
	t.Helper()
	var out bytes.Buffer
	counts, err := Export(context.Background(), h.url, f, h.blobs, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), counts
}

// contents returns all rows of history as text, without what belongs to the installation.
func (h archivedHistory) contents(t *testing.T) (rows []string) {
	t.Helper()
	for _, sql := range []string{
		`SELECT (to_jsonb(e) - 'node')::text FROM executions e ORDER BY id`,
		`SELECT (to_jsonb(s) - 'node' - 'state' - 'ended_at')::text FROM sandboxes s ORDER BY id`,
		`SELECT q::text FROM queries q ORDER BY q`, `SELECT c::text FROM connections c ORDER BY c`,
		`SELECT (to_jsonb(r) - 'created_at')::text FROM recording_chunks r ORDER BY execution_id, sequence`,
		`SELECT (to_jsonb(i) - 'created_at')::text FROM input_logs i ORDER BY execution_id`,
		`SELECT a::text FROM artifacts a ORDER BY id`,
		`SELECT t::text FROM execution_totals t WHERE executions > 0 ORDER BY t`,
	} {
		rows = append(rows, h.query(t, sql)...)
	}
	return rows
}

// verify returns the problems of a history. Its recordings are not real, so they are only loaded.
func (h archivedHistory) verify(t *testing.T, repair bool) (counts VerifyCounts, problems []string) {
	t.Helper()
	counts, err := Verify(context.Background(), VerifyConfig{
		URL: h.url, Blobs: h.blobs, RepairCounts: repair,
		ReadRecording: func(_ string, chunks []sandbox.Chunk, load func(int) ([]byte, error)) error {
			for _, c := range chunks {
				if data, err := load(c.Sequence); err != nil || len(data) == 0 {
					return fmt.Errorf("chunk %d: %d bytes, %w", c.Sequence, len(data), err)
				}
			}
			return nil
		},
		Report: func(problem string) { problems = append(problems, problem) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts, problems
}

// An import into an empty history makes the same history, and a second import changes nothing.
func TestImportMakesTheSameHistory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, to := newArchivedHistory(t), newArchivedHistory(t)
	const count = 6
	from.fill(t, count)
	from.begin(t, runningExecution("runs")) // is left out
	archive, counts := from.export(t, ExportFilter{})
	want := ArchiveCounts{Executions: count, Chunks: 2 * count, InputLogs: count, Artifacts: 3 * count}
	if counts != want {
		t.Errorf("export: got %+v, want %+v", counts, want)
	}
	got, err := to.Import(ctx, strings.NewReader(archive), to.blobs, checkAnyChunk)
	if err != nil || got != want {
		t.Fatalf("import: got %+v, %v; want %+v", got, err, want)
	}
	if _, err := from.EraseExecution(ctx, "runs"); !hasFault(err, sandbox.FaultBusy) {
		t.Fatal(err)
	}
	from.finish(t, runningExecution("runs"), sandbox.StatusCompleted)
	if _, err := from.EraseExecution(ctx, "runs"); err != nil {
		t.Fatal(err)
	}
	if got, want := to.contents(t), from.contents(t); !slices.Equal(got, want) {
		for n := range min(len(got), len(want)) {
			if got[n] != want[n] {
				t.Errorf("row %d: got %.300s, want %.300s", n, got[n], want[n])
			}
		}
		t.Errorf("got %d rows, want %d", len(got), len(want))
	}
	for _, id := range []string{"e00", "e05"} {
		a, errA := from.Execution(ctx, id)
		b, errB := to.Execution(ctx, id)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) || b.RecordedSteps != 2 {
			t.Errorf("execution %s: got %+v, %v; want %+v, %v", id, b, errB, a, errA)
		}
	}
	list, _, err := to.ExecutionSummaries(ctx, sandbox.ExecutionFilter{User: "ada"})
	if err != nil || len(list) != count/2 || list[0].ID != "e04" {
		t.Errorf("list of ada: got %+v, %v; want %d executions", list, err, count/2)
	}
	if st, err := to.Statistics(ctx, ""); err != nil || st.TotalExecutions != count {
		t.Errorf("statistics: got %+v, %v; want %d executions", st, err, count)
	}
	newest, err := os.ReadFile(filepath.Join(to.blobsDir, "sessions/s-ada/artifacts/large"))
	if err != nil || !strings.HasPrefix(string(newest), "e04") {
		t.Errorf("the file large of ada: got %.3s, %v; want that of e04", newest, err)
	}
	if counts, problems := to.verify(t, false); len(problems) > 0 || counts.Executions != count ||
		counts.Recordings != count || counts.Artifacts != 3*count {
		t.Errorf("verify: got %+v, %q; want no problem", counts, problems)
	}
	got, err = to.Import(ctx, strings.NewReader(archive), to.blobs, checkAnyChunk)
	if want := (ArchiveCounts{Skipped: count}); err != nil || got != want {
		t.Errorf("second import: got %+v, %v; want %+v", got, err, want)
	}
}

// tornArchive fails when as much as limit was read of it for the second time: the first time checks it.
type tornArchive struct {
	*strings.Reader
	isChecked bool
	limit     int
}

var errTorn = errors.New("torn")

func (a *tornArchive) Seek(offset int64, whence int) (int64, error) {
	a.isChecked = true
	return a.Reader.Seek(offset, whence)
}

func (a *tornArchive) Read(p []byte) (int, error) {
	if !a.isChecked {
		return a.Reader.Read(p)
	}
	n, err := a.Reader.Read(p[:min(len(p), a.limit)])
	if a.limit -= n; err == nil && a.limit == 0 {
		err = errTorn
	}
	return n, err
}

// TestImportReadsAnArchiveOfAnOlderVersion imports an archive of the last version with 17 migrations, which has runs of
// several kinds with statements, recordings and artifacts.
func TestImportReadsAnArchiveOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	archive, err := os.Open("testdata/format-1.jsonl.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	h := newArchivedHistory(t)
	got, err := h.Import(ctx, archive, h.blobs, func(sandbox.Chunk) error { return nil })
	if want := (ArchiveCounts{Executions: 8, Chunks: 3, Artifacts: 2}); err != nil || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	if counts, problems := h.verify(t, false); len(problems) > 0 || counts.Recordings != 3 {
		t.Errorf("verify: got %+v, %q; want 3 recordings and no problems", counts, problems)
	}
	list, _, err := h.Executions(ctx, sandbox.ExecutionFilter{})
	if err != nil || len(list) != 8 || !list[0].Kind.IsKnown() || list[0].Stdout != "1\n" {
		t.Errorf("got %d executions and %v; want 8, the last of NeMo's API: %+v", len(list), err, list)
	}
}

// An import that ends in the middle, wherever that is, leaves a history to which a second import adds the rest.
func TestInterruptedImportIsRepeated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from := newArchivedHistory(t)
	const count = 4
	from.fill(t, count)
	archive, _ := from.export(t, ExportFilter{})
	want := from.contents(t)
	for part := 1; part < 6; part++ {
		t.Run(fmt.Sprintf("after %d sixths", part), func(t *testing.T) {
			t.Parallel()
			to := newArchivedHistory(t)
			torn := &tornArchive{Reader: strings.NewReader(archive), limit: len(archive) * part / 6}
			if _, err := to.Import(ctx, torn, to.blobs, checkAnyChunk); !errors.Is(err, errTorn) {
				t.Fatalf("got %v, want %v", err, errTorn)
			}
			counts, err := to.Import(ctx, strings.NewReader(archive), to.blobs, checkAnyChunk)
			if err != nil || counts.Executions+counts.Skipped != count {
				t.Errorf("the second import: got %+v, %v; want %d executions", counts, err, count)
			}
			if got := to.contents(t); !slices.Equal(got, want) {
				t.Errorf("got %d rows, want the %d of the exporter", len(got), len(want))
			}
			if _, problems := to.verify(t, false); len(problems) > 0 {
				t.Errorf("verify: got %q, want no problem", problems)
			}
		})
	}
}

func TestExportSelects(t *testing.T) {
	t.Parallel()
	h := newArchivedHistory(t)
	base := h.fill(t, 4)
	for _, c := range []struct {
		filter ExportFilter
		want   int
	}{
		{ExportFilter{Since: base.Add(time.Minute)}, 3},
		{ExportFilter{Until: base.Add(time.Minute)}, 1},
		{ExportFilter{Since: base.Add(time.Minute), Until: base.Add(3 * time.Minute), User: "ada"}, 1},
		{ExportFilter{User: "nobody"}, 0},
	} {
		if _, counts := h.export(t, c.filter); counts.Executions != c.want {
			t.Errorf("%+v: got %d executions, want %d", c.filter, counts.Executions, c.want)
		}
	}
	if err := os.RemoveAll(filepath.Join(h.blobsDir, "artifacts")); err != nil {
		t.Fatal(err)
	}
	if _, counts := h.export(t, ExportFilter{}); counts.Missing != 12 || counts.Executions != 4 {
		t.Errorf("without bytes: got %+v, want 4 executions with 12 artifacts without bytes", counts)
	}
}

// A torn, damaged or newer archive is refused before anything is stored.
var createdAt = regexp.MustCompile(`"created_at":"[^"]*"`)

func TestBadArchivesAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, to := newArchivedHistory(t), newArchivedHistory(t)
	from.fill(t, 3)
	archive, _ := from.export(t, ExportFilter{})
	unzip, err := zstd.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	defer unzip.Close()
	plain, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	zipped := func(text string) string {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := string(plain)
	lastLine := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	// forged returns the archive with a text replaced and the right checksum.
	forged := func(old, replacement string) string {
		lines := strings.ReplaceAll(text[:lastLine], old, replacement)
		sum := sha256.Sum256([]byte(lines))
		return zipped(fmt.Sprintf(`%s{"end":{"executions":3,"sha256":"%x"}}`+"\n", lines, sum))
	}
	// forgedTime returns the archive with another time in the first line with a text.
	forgedTime := func(with, time string) string {
		for line := range strings.Lines(text) {
			if strings.Contains(line, with) {
				return forged(line, createdAt.ReplaceAllString(line, `"created_at":"`+time+`"`))
			}
		}
		t.Fatalf("no line has %s", with)
		return ""
	}
	// forgedLine returns the archive with a text replaced in the first line with a field.
	forgedLine := func(field, old, replacement string) string {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, `{"`+field+`":`) {
				return forged(line, regexp.MustCompile(old).ReplaceAllString(line, replacement))
			}
		}
		t.Fatalf("no line has %s", field)
		return ""
	}
	// forgedUser returns the archive with another user in the first line with a field.
	forgedUser := func(field string) string { return forgedLine(field, `"user_id":"ada"`, `"user_id":"eve"`) }
	bare := regexp.MustCompile(`(?m)^\{"(sandbox|bytes|artifact)":.*\n`).ReplaceAllString(text[:lastLine], "")
	inputsLine := func(log []byte) string {
		return fmt.Sprintf(`{"inputs":%q}`, base64.StdEncoding.EncodeToString(log)) + "\n"
	}
	inputs := inputsLine(encodedLog(t, "e01"))
	manyRequests := []byte(zipped(`{"requests":[` + strings.Repeat("{},", 3<<20) + "{}]}\n"))
	bomb := []byte(zipped("{}\n" + strings.Repeat(" ", 65<<20)))
	const year10000 = "9999-12-31T23:59:59-12:00" // in UTC
	for name, c := range map[string]struct{ archive, want string }{
		"count": {zipped(fmt.Sprintf(`%s{"end":{"executions":4,"sha256":"%x"}}`+"\n", text[:lastLine],
			sha256.Sum256([]byte(text[:lastLine])))), "it has 3 executions"},
		"execution id": {forged(`"e01"`, `"../../e01"`), `"../../e01" cannot be an id`},
		"sandbox id":   {forged(`"s-ada"`, `"a/b"`), `"a/b" cannot be an id`},
		"artifact id":  {forged(`"large-e01"`, `""`), `"" cannot be an id`},
		"two ids":      {forged(`{"begin":"e01"}`, `{"begin":"e09"}`), "is of execution e01, want e09"},
		"artifact of another execution": {
			forged(`"artifact_id":"large-e01","execution_id":"e01"`, `"artifact_id":"large-e01","execution_id":"e02"`),
			"the artifact is of execution e02, want e01"},
		"record of another execution": {forgedLine("execution", `"execution_id":"e00"`, `"execution_id":"e02"`),
			"the record is of execution e02, want e00"},
		"not ended":     {forgedLine("execution", `"completed_at":"[^"]*"`, `"completed_at":null`), "want that of one"},
		"data folder":   {forged(`"folder":"sessions/s-ada/artifacts"`, `"folder":"."`), `"." cannot be the folder`},
		"parent folder": {forged(`"path":"large"`, `"path":"a/../../../admin.key"`), "cannot be the path"},
		"status":        {forged(`"status":"completed"`, `"status":"<b>"`), `the status "<b>", want that of one`},
		"state":         {forged(`"state":"active"`, `"state":"x"`), `the unknown state "x"`},
		"running":       {forged(`"status":"completed"`, `"status":"running"`), `the status "running", want`},
		"kind":          {forged(`"kind":"execute"`, `"kind":"x"`), `the unknown kind "x"`},
		"no kind":       {forged(`"kind":"execute",`, ``), `the unknown kind ""`},
		"user":          {forged(`"user_id":"grace"`, `"user_id":"a\nb"`), "the user of a sandbox: user_id: it has"},
		"no user":       {forged(`"user_id":"ada"`, `"user_id":""`), "the user of a sandbox: user_id: it is empty"},
		"user of a record alone": {forged(text[:lastLine], strings.ReplaceAll(bare, `"user_id":"ada"`, `"user_id":""`)),
			"execution e00: user_id: it is empty"},
		"another user":  {forgedUser("execution"), `is of the user "eve", and its artifacts are of "ada"`},
		"artifact user": {forgedUser("artifact"), `the artifact is of the user "ada", want "eve"`},
		"other users": {forged(`{"format":2,`, `{"format":2,"user_id":"ada",`),
			`is of the user "grace" in an export of "ada"`},
		"many statements": {
			forged(`"queries":[`, `"queries":[`+strings.Repeat("{},", 3<<20)), "its lists would take more than 512 MiB"},
		"long traceback": {forged(`"queries":[`, `"exception":{"message":"`+strings.Repeat("x", maxException)+
			`"},"queries":[`), `"exception" has 8`},
		"long names": {forged(`"queries":[`, `"artifact_map":{"`+strings.Repeat("x", maxListField)+`":""},"queries":[`),
			`"artifact_map" has 3`},
		"wrong type": {forged(`"stdout":"`, `"stdout":7,"x":"`), "decode the record"},
		"policy":     {forged(`"policy":{`, `"policy":"x","other":{`), "the policy of a sandbox"},
		"chunk": {forged(`"data":"ZTAx"`, `"data":"Zm9yZ2Vk"`),
			"a chunk of the recording of execution e01: the chunk is forged"},
		"inputs": {forged(inputs, `{"inputs":"Zm9yZ2Vk"}`+"\n"),
			"the input log of execution e01: decode an input log"},
		"large inputs":   {forged(inputs, inputsLine(bomb)), "the input log of execution e01: decode an input log"},
		"many inputs":    {forged(inputs, inputsLine(manyRequests)), "its lists would take more than 512 MiB"},
		"two inputs":     {forged(inputs, inputs+inputs), "the second input log of execution e01"},
		"artifact time":  {forgedTime(`{"artifact":`, year10000), "after 9999"},
		"execution time": {forgedTime(`{"execution":`, year10000), "after 9999"},
		"sandbox time":   {forgedTime(`{"sandbox":`, year10000), "after 9999"},
		"early time":     {forgedTime(`{"execution":`, "0000-01-01T00:00:00+12:00"), "before the year 0"},
		"empty":          {"", "not an export of history"},
		"other":          {"hello, world", "not an export of history"},
		"other JSON":     {zipped("{\"a\": 1}\n"), "not an export of history"},
		"torn bytes":     {archive[:len(archive)/2], "torn"},
		"torn line":      {zipped(text[:lastLine-10]), "torn"},
		"no last line":   {zipped(text[:lastLine]), "torn"},
		"other contents": {zipped(strings.Replace(text, "total = 1", "total = 2", 1)), "damaged"},
		"lost execution": {zipped(strings.Replace(text, `{"begin":"e01"}`+"\n", "", 1)), "damaged"},
		"no JSON":        {zipped(strings.Replace(text, `{"begin":"e01"}`, `{"begin":`, 1)), "damaged"},
		"newer":          {zipped(strings.Replace(text, `{"format":2`, `{"format":3`, 1)), "use a newer glasshouse"},
	} {
		_, err := to.Import(ctx, strings.NewReader(c.archive), to.blobs, checkAnyChunk)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
	if rows := to.contents(t); len(rows) > 0 {
		t.Errorf("rows after refused imports: got %.300q, want none", rows)
	}
	// The files are read while what comes before them is imported.
	archive = forgedLine("bytes", `^\{"bytes":"...`, `{"bytes":"AAA`)
	_, err = to.Import(ctx, strings.NewReader(archive), to.blobs, checkAnyChunk)
	if err == nil || !strings.Contains(err.Error(), "has the checksum") {
		t.Errorf("another content of a file: got %v, want an error that names its checksum", err)
	}
}

// An execution does not become one in a sandbox that belongs to another user in the importing history.
func TestImportKeepsSandboxesOfUsersApart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, to := newArchivedHistory(t), newArchivedHistory(t)
	from.fill(t, 1)
	archive, _ := from.export(t, ExportFilter{})
	box := sandbox.Sandbox{ID: "s-ada", Owner: "grace", State: sandbox.StateActive, CreatedAt: time.Now()}
	if err := to.CreateSandbox(ctx, box); err != nil {
		t.Fatal(err)
	}
	_, err := to.Import(ctx, strings.NewReader(archive), to.blobs, checkAnyChunk)
	if want := `of the user "ada" in the export, and of "grace" in history`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
	if rows := to.query(t, `SELECT id FROM executions`); len(rows) > 0 {
		t.Errorf("got the executions %q, want none", rows)
	}
}

// Verify names each thing that is wrong, and repairs the counts.
func TestVerifyFindsProblems(t *testing.T) {
	t.Parallel()
	h := newArchivedHistory(t)
	h.fill(t, 5)
	if _, problems := h.verify(t, false); len(problems) > 0 {
		t.Fatalf("got %q, want no problem", problems)
	}
	sum := h.query(t, `SELECT sha256 FROM artifacts WHERE id = 'large-e04'`)[0]
	damaged := filepath.Join(h.blobsDir, "artifacts", sum[:2], sum)
	if err := errors.Join(os.Chmod(damaged, 0o600), os.WriteFile(damaged, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	gone := h.query(t, `SELECT sha256 FROM artifacts WHERE id = 'large-e03'`)[0]
	if err := os.Remove(filepath.Join(h.blobsDir, "artifacts", gone[:2], gone)); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE executions SET record = 'x' WHERE id = 'e00'`,
		`UPDATE executions SET owner = 'eve' WHERE id = 'e01'`,
		`DELETE FROM queries WHERE execution_id = 'e02' AND number = 1`,
		`DELETE FROM connections WHERE execution_id = 'e02'`,
		`UPDATE recording_chunks SET data = '' WHERE execution_id = 'e02' AND sequence = 1`,
		`INSERT INTO recording_chunks SELECT 'gone', sequence, first_step, last_step, definitions, index, data,
			'2024-05-01' FROM recording_chunks WHERE execution_id = 'e03'`,
		`UPDATE input_logs SET log = 'x' WHERE execution_id = 'e03'`,
		`INSERT INTO input_logs SELECT 'lost', log, '2024-05-01' FROM input_logs WHERE execution_id = 'e04'`,
		`UPDATE execution_totals SET executions = executions + 7 WHERE owner = 'grace'`,
	} {
		if _, err := h.pool.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	wants := []string{
		"execution e00: its record cannot be read", "execution e01: its record is of execution e01, user grace",
		"execution e02: its record has 3 statements, the table queries has 2",
		"execution e02: its record has 1 connections, the table connections has 0",
		"execution e02: its recording cannot be read: chunk 1", "execution gone: history has a recording of it",
		"execution e03: its inputs cannot be read", "execution lost: history has inputs of it",
		"artifact large-e04 (large of execution e04): its content has 1 bytes",
		"artifact large-e03 (large of execution e03): the blob store has no content " + gone,
		"counts of user grace, status completed: 8 executions",
	}
	counts, problems := h.verify(t, true)
	for _, want := range wants {
		if !slices.ContainsFunc(problems, func(got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("got %q, want a problem %q", problems, want)
		}
	}
	if counts.Problems != len(wants) || counts.Executions != 5 {
		t.Errorf("got %+v, want %d problems of 5 executions: %q", counts, len(wants), problems)
	}
	if _, problems := h.verify(t, false); len(problems) != len(wants)-1 {
		t.Errorf("after the repair of the counts: got %q, want %d problems", problems, len(wants)-1)
	}
}
