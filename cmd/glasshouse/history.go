package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

func newHistoryCommand() *cobra.Command {
	return newGroup("history", "Export, import and verify the history",
		newHistoryExportCommand(), newHistoryImportCommand(), newHistoryVerifyCommand())
}

// timeFlag is the value of a flag for a time: RFC 3339, a date, or an age such as 720h.
type timeFlag struct{ time.Time }

func (*timeFlag) Type() string { return "TIME" }

func (t *timeFlag) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func (t *timeFlag) Set(text string) (err error) {
	if age, err := time.ParseDuration(text); err == nil && age > 0 {
		t.Time = time.Now().Add(-age).UTC()
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t.Time, err = time.Parse(layout, text); err == nil {
			return nil
		}
	}
	return errors.New("want a time such as 2026-01-31 or 2026-01-31T12:00:00Z, or an age such as 720h")
}

func newHistoryExportCommand() *cobra.Command {
	var since, until timeFlag
	var user string
	cmd := &cobra.Command{
		Use: "export [flags] FILE.jsonl.zst", Short: "Write executions with everything that belongs to them to a file",
		Args: arguments(1, 1),
		Long: "Write ended executions with their outputs, statements, connections, recordings, inputs and artifacts " +
			"to a file. " +
			"The service may run meanwhile: the command reads the history database directly.",
		Example: `  glasshouse history export all.jsonl.zst
  glasshouse history export --since 2026-01-01 --until 2026-02-01 --user anna january.jsonl.zst
  glasshouse history export --since 24h yesterday.jsonl.zst`,
	}
	cmd.Flags().Var(&since, "since",
		"only executions that began at a `TIME` or later: 2026-01-31, 2026-01-31T12:00:00Z or 720h ago")
	cmd.Flags().Var(&until, "until", "only executions that began before a `TIME`")
	cmd.Flags().StringVar(&user, "user", "", "only executions of a `USER`")
	return withSettings(cmd, withHistory(func(ctx context.Context, h openHistory, args []string) error {
		filter := history.ExportFilter{Since: since.Time, Until: until.Time, User: user}
		counts, err := writeNewFile(args[0], func(w io.Writer) (history.ArchiveCounts, error) {
			return history.Export(ctx, h.url, filter, h.blobs, w)
		})
		if err != nil {
			return err
		}
		fmt.Printf("exported %d executions with %d artifacts to %s\n", counts.Executions, counts.Artifacts, args[0])
		if counts.Missing > 0 {
			fmt.Printf("%d artifacts are without their bytes, which the data folder does not have\n", counts.Missing)
		}
		if counts.Unreadable > 0 {
			return fmt.Errorf("%d executions are left out, because their records cannot be read: "+
				"`glasshouse history verify` names them", counts.Unreadable)
		}
		return nil
	}))
}

// writeNewFile writes a file that must not exist, so that it is whole and on disk if it has its name.
func writeNewFile[T any](path string, write func(io.Writer) (T, error)) (result T, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return result, errors.Join(fmt.Errorf("%s exists: remove it, or name another file", path), err)
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return result, err
	}
	result, err = write(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return result, errors.Join(err, os.Remove(path+".new"))
	}
	return result, os.Rename(path+".new", path)
}

func newHistoryImportCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use: "import FILE.jsonl.zst", Short: "Add the executions of an export to history", Args: arguments(1, 1),
		Long: "Add the executions of an export to history. Executions that history has are skipped, so the command may " +
			"be repeated. A replay of them needs the signing.key of the data folder that wrote the export. The " +
			"service must be stopped: it removes files that belong to no execution yet.",
		Example: `  glasshouse history import january.jsonl.zst`,
	}, func(ctx context.Context, s settings, args []string) error {
		f, err := openRegular(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return s.withStoppedService(ctx, func(h openHistory, store *history.Store) error {
			counts, err := store.Import(ctx, f, h.blobs, debugger.CheckChunk)
			if counts.Executions+counts.Skipped > 0 || err == nil {
				fmt.Printf("imported %d executions with %d artifacts; skipped %d that history has\n",
					counts.Executions, counts.Artifacts, counts.Skipped)
			}
			return err
		})
	})
}

func newHistoryVerifyCommand() *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use: "verify [flags]", Short: "Check that all of history can be read", Args: arguments(0, 0),
		Long: "Check that every record, recording, input log and artifact can be read, and that the kept counts are " +
			"right. Each problem is printed with the id of what has it; the exit code is 1 if there is one. The " +
			"service may run meanwhile.",
		Example: `  glasshouse history verify
  glasshouse history verify --repair`,
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "count the executions again if the counts of statistics are wrong")
	return withSettings(cmd, withHistory(func(ctx context.Context, h openHistory, _ []string) error {
		counts, err := history.Verify(ctx, history.VerifyConfig{
			URL: h.url, Blobs: h.blobs, ReadRecording: readRecording, RepairCounts: repair,
			Report: func(problem string) { fmt.Println(problem) },
		})
		if err != nil {
			return err
		}
		fmt.Printf("read %d executions, %d recordings and %d artifacts\n", counts.Executions, counts.Recordings,
			counts.Artifacts)
		if counts.Problems > 0 {
			return fmt.Errorf("history has %d problems", counts.Problems)
		}
		return nil
	}))
}

// readRecording reads every line of a recording.
func readRecording(code string, chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) error {
	const page = 1000
	recorded, err := debugger.OpenRecording(code, chunks, load)
	if err != nil {
		return err
	}
	for first := 1; first <= recorded.Steps(); first += page {
		if _, err := recorded.Lines(first, first+page-1); err != nil {
			return fmt.Errorf("steps from %d: %w", first, err)
		}
	}
	return nil
}

// openHistory is the history of a data folder: the database and the files.
type openHistory struct {
	url   string
	blobs *blob.Store
}

// withHistory returns a command's function that reads history, while the service runs or is stopped. If it is stopped,
// records in its write-ahead log are first inserted into the database.
func withHistory(
	do func(context.Context, openHistory, []string) error,
) func(context.Context, settings, []string) error {
	return func(ctx context.Context, s settings, args []string) error {
		if dial(s.server.dataDir) == nil {
			return s.withStoppedService(ctx, func(h openHistory, store *history.Store) error {
				if err := store.Close(); err != nil {
					return err
				}
				return do(ctx, h, args)
			})
		}
		h, err := s.openHistory(s.databases.historyURL)
		if err != nil {
			return err
		}
		defer h.blobs.Close()
		return do(ctx, h, args)
	}
}

// openHistory opens the blob store of the data folder. An empty url means the embedded server that runs.
func (s *settings) openHistory(url string) (h openHistory, err error) {
	if h.url = url; url == "" {
		if h.url, err = embedded.URL(s.server.dataDir, embedded.RoleHistory, embedded.DatabaseHistory); err != nil {
			return h, err
		}
	}
	h.blobs, err = blob.Open(s.server.dataDir)
	return h, err
}

// withStoppedService calls do with the history of a data folder on which no service runs. It starts the embedded
// PostgreSQL for as long.
func (s *settings) withStoppedService(ctx context.Context, do func(openHistory, *history.Store) error) (err error) {
	dir := s.server.dataDir
	if dial(dir) != nil {
		return fmt.Errorf("a service runs on %s: stop it first", dir)
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the data folder cannot be used: %w; name another with --data-dir", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	log := newLog(*s)
	if s.databases.historyURL == "" {
		server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
	}
	h, err := s.openHistory(s.databases.historyURL)
	if err != nil {
		return err
	}
	defer h.blobs.Close()
	store, err := history.Open(ctx, history.Config{URL: h.url, Dir: filepath.Join(dir, "history")}, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(h, store)
}
