package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"glasshouse/sandbox/blob"
)

// backupFormat is the version of the layout of a backup. Restore reads this version and earlier ones.
const backupFormat = 1

const (
	manifestFile = "manifest.json" // in a backup; it is written last
	restoreFile  = "restoring"     // in a data folder that restore has not completed
	unlinkedFile = "unlinked"      // in a data folder whose files have no names yet: the next start makes them
)

// backupManifest says what a backup has.
type backupManifest struct {
	Format       int               `json:"format"`
	Version      string            `json:"glasshouse"`
	CreatedAt    time.Time         `json:"created_at"`
	OuterHistory bool              `json:"outer_history"` // the history database is not in the backup
	Dumps        map[string]string `json:"dumps"`         // SHA-256 sums of NAME.dump, by the name of the database
	Files        int               `json:"files"`         // without the manifest; 0: an older backup, which does not say
}

// keptFiles are the files of the data folder that a backup has in addition to history, the artifacts and the databases.
var keptFiles = []string{"admin.key", "signing.key"}

func newBackupCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use: "backup DIR", Args: arguments(1, 1),
		Short: "Copy the databases and files of the service to an empty folder",
		Long: "Copy the embedded databases, the write-ahead log of history, the artifacts and the keys to an " +
			"empty folder. " +
			"The service may run meanwhile. Every execution that was answered before the command began is in " +
			"the backup. " +
			"An outer history database is not: the command prints how to dump it.",
		Example: `  glasshouse backup /backup/glasshouse-$(date +%F)`,
	}, backup)
}

func newRestoreCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use: "restore DIR", Short: "Make a data folder from a backup", Args: arguments(1, 1),
		Long:    "Make a data folder, which must be empty or missing, from a backup. Then start the service on it.",
		Example: `  glasshouse restore --data-dir /var/lib/glasshouse /backup/glasshouse-2026-01-31`,
	}, restore)
}

func backup(ctx context.Context, s settings, args []string) error {
	target := args[0]
	if err := makeEmptyFolder(target, "name a folder that does not exist"); err != nil {
		return err
	}
	if s.databases.historyURL == "" || s.databases.knowledgeURL == "" {
		if _, err := os.Stat(s.server.dataDir); err != nil {
			return fmt.Errorf("the data folder cannot be used: %w; name another with --data-dir", err)
		}
		stop, err := s.ensureEmbedded(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	manifest, err := s.backupTo(ctx, target)
	if err != nil {
		return fmt.Errorf("%w; the backup in %s is not complete: remove it", err, target)
	}
	if manifest.OuterHistory {
		fmt.Printf("The history database is not in the backup. Dump it now, after this command:\n"+
			"  pg_dump --format=custom --file=%s \"$GLASSHOUSE_DATABASE_URL\"\n", filepath.Join(target, "history.dump"))
	}
	fmt.Println("backup complete:", target)
	return nil
}

// backupTo copies everything to a folder. The order makes the backup consistent while the service runs:
//
//  1. Contents are copied before the dump, because they may be deleted meanwhile.
//  2. The write-ahead log is copied before the dump: a record that is not in the copy is in the database.
//  3. Contents are copied again after the dump: a content is stored before its row.
func (s *settings) backupTo(ctx context.Context, target string) (backupManifest, error) {
	dir := s.server.dataDir
	manifest := backupManifest{Format: backupFormat, Version: version, CreatedAt: time.Now().UTC(),
		OuterHistory: s.databases.historyURL != "", Dumps: map[string]string{}}
	copyContents := func() error {
		return copyTree(ctx, filepath.Join(dir, "artifacts"), filepath.Join(target, "artifacts"))
	}
	if err := copyContents(); err != nil {
		return manifest, err
	}
	if err := copyTree(ctx, filepath.Join(dir, "history"), filepath.Join(target, "history")); err != nil {
		return manifest, err
	}
	for _, name := range keptFiles {
		err := copyFile(filepath.Join(dir, name), filepath.Join(target, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return manifest, err
		}
	}
	var databases []string
	if s.databases.historyURL == "" {
		databases = append(databases, embedded.DatabaseHistory)
	}
	if s.databases.knowledgeURL == "" {
		databases = append(databases, embedded.DatabaseKnowledge)
	}
	for _, database := range databases {
		sum := sha256.New()
		_, err := writeNewFile(dumpPath(target, database), func(w io.Writer) (struct{}, error) {
			return struct{}{}, embedded.Dump(ctx, dir, database, io.MultiWriter(w, sum))
		})
		if err != nil {
			return manifest, err
		}
		manifest.Dumps[database] = hex.EncodeToString(sum.Sum(nil))
	}
	err := copyContents()
	if err == nil {
		manifest.Files, err = filesBelow(target)
	}
	if err != nil {
		return manifest, err
	}
	_, err = writeNewFile(filepath.Join(target, manifestFile), func(w io.Writer) (struct{}, error) {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return struct{}{}, out.Encode(manifest)
	})
	return manifest, err
}

// filesBelow returns the number of files below a folder.
func filesBelow(dir string) (count int, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			count++
		}
		return err
	})
	return count, err
}

func dumpPath(dir, database string) string { return filepath.Join(dir, database+".dump") }

// makeEmptyFolder makes a folder, or returns an error if it is there and not empty.
func makeEmptyFolder(dir, remedy string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: %s", dir, remedy)
	}
	return err
}

// copyTree copies the files of a folder that the target does not have. A folder or file that is removed meanwhile is
// left out.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if !entry.Type().IsRegular() || entry.Name()[0] == '.' { // a file that is being written
			return nil
		}
		if err = copyFile(path, target); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}

// copyFile copies a file. It returns fs.ErrExist if the target exists.
func copyFile(from, to string) error {
	in, err := openRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// checkRestored returns an error if a restore into a data folder was interrupted.
func checkRestored(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, restoreFile)); err == nil {
		return fmt.Errorf("a restore into %s did not finish: remove the folder and restore again", dir)
	}
	return nil
}

func restore(ctx context.Context, s settings, args []string) error {
	source, dir := args[0], s.server.dataDir
	manifest, err := readManifest(source)
	if err != nil {
		return err
	}
	err = makeEmptyFolder(dir, "a backup is restored into an empty data folder; name one with --data-dir")
	if err != nil {
		return err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	marker := filepath.Join(dir, restoreFile)
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return err
	}
	if err := s.restoreFrom(ctx, source, manifest); err != nil {
		return fmt.Errorf("%w; %s is not complete: remove it", err, dir)
	}
	if err := os.Remove(marker); err != nil {
		return err
	}
	fmt.Printf("restored the backup of %s into %s; start the service with `glasshouse serve --data-dir %s`\n",
		manifest.CreatedAt.Format(time.RFC3339), dir, dir)
	return nil
}

// readManifest returns the manifest of a backup that is complete and undamaged.
func readManifest(dir string) (m backupManifest, err error) {
	path := filepath.Join(dir, manifestFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s has no %s: it is not a backup, or the backup did not finish", dir, manifestFile)
	}
	if err := checkRegular(dir); err != nil { // before anything is read
		return m, err
	}
	f, err := openRegular(path)
	if err == nil {
		err = errors.Join(json.NewDecoder(f).Decode(&m), f.Close())
	}
	if err != nil {
		return m, fmt.Errorf("read the backup: %w", err)
	}
	if m.Format > backupFormat {
		return m, fmt.Errorf("the backup has format %d, and this glasshouse reads formats up to %d: "+
			"use a newer glasshouse",
			m.Format, backupFormat)
	}
	count, err := filesBelow(dir)
	if err != nil {
		return m, fmt.Errorf("read the backup: %w", err)
	}
	if count--; count < m.Files { // without the manifest; a dump of an outer history may have come later
		return m, fmt.Errorf("the backup is not complete: it has %d files of %d: use another backup", count, m.Files)
	}
	for database, want := range m.Dumps {
		if database != embedded.DatabaseHistory && database != embedded.DatabaseKnowledge {
			return m, fmt.Errorf("the backup is damaged: it has a dump of %q, which is not an embedded database: use "+
				"another backup", database)
		}
		f, err := openRegular(dumpPath(dir, database))
		if err != nil {
			return m, fmt.Errorf("the backup is not complete: %w", err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		_ = f.Close()
		if got := hex.EncodeToString(sum.Sum(nil)); err != nil || got != want {
			return m, fmt.Errorf("the backup is damaged: the checksum of %s is %.12s, want %.12s: use another backup",
				dumpPath(dir, database), got, want)
		}
	}
	return m, nil
}

// checkRegular returns an error if a backup has a link, a pipe or a device. Somebody else may have put it there, and
// restore would read another file of the machine, or wait. The folder itself may be a link.
func checkRegular(dir string) error {
	dir, err := filepath.EvalSymlinks(dir) // WalkDir does not follow it
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != dir && !entry.IsDir() && !entry.Type().IsRegular() {
			err = fmt.Errorf("the backup is damaged: %s is neither a file nor a folder: use another backup", path)
		}
		return err
	})
}

// restoreFrom fills the data folder. It leaves the database as the service left it: the next start inserts the records
// of the write-ahead log and closes what was running.
func (s *settings) restoreFrom(ctx context.Context, source string, manifest backupManifest) error {
	dir := s.server.dataDir
	for _, name := range keptFiles {
		err := copyFile(filepath.Join(source, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := copyTree(ctx, filepath.Join(source, "history"), filepath.Join(dir, "history")); err != nil {
		return err
	}
	blobs, err := blob.Open(dir)
	if err != nil {
		return err
	}
	defer blobs.Close()
	if err := restoreContents(ctx, source, blobs); err != nil {
		return err
	}
	log := newLog(*s)
	url := s.databases.historyURL
	if len(manifest.Dumps) > 0 {
		server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log})
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		for database := range manifest.Dumps {
			if err := restoreDump(ctx, server, database, dumpPath(source, database)); err != nil {
				return err
			}
		}
		if !manifest.OuterHistory {
			url = server.URL(embedded.RoleHistory, embedded.DatabaseHistory)
		}
	}
	if url == "" || manifest.OuterHistory {
		if err := os.WriteFile(filepath.Join(dir, unlinkedFile), nil, 0o600); err != nil {
			return err
		}
		fmt.Printf("The history database is not in the backup. If you have not restored it yet, do so before "+
			"the start:\n"+
			"  pg_restore --no-owner --dbname=\"$GLASSHOUSE_DATABASE_URL\" %s\n", filepath.Join(source, "history.dump"))
		return nil
	}
	store, err := history.Open(ctx, history.Config{URL: url, Dir: filepath.Join(dir, "history")}, log)
	if err != nil {
		return err
	}
	return errors.Join(store.LinkArtifacts(ctx, blobs), store.Close())
}

// linkRestored gives the files of a restored data folder their names, if restore could not do it because the history
// database was not there yet.
func (a *app) linkRestored(ctx context.Context, dir string) error {
	marker := filepath.Join(dir, unlinkedFile)
	if _, err := os.Lstat(marker); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := a.history.LinkArtifacts(ctx, a.blobs); err != nil {
		return fmt.Errorf("give the restored files their names: %w", err)
	}
	return os.Remove(marker)
}

func restoreDump(ctx context.Context, server *embedded.Server, database, path string) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return server.Restore(ctx, database, f)
}

// restoreContents stores the contents of a backup, and checks that each has the checksum of its name.
func restoreContents(ctx context.Context, source string, blobs *blob.Store) error {
	paths, err := filepath.Glob(filepath.Join(source, "artifacts", "*", "*"))
	for _, path := range paths {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		f, err := openRegular(path)
		if err != nil {
			return err
		}
		stored, err := blobs.Put("", f)
		_ = f.Close()
		if err != nil {
			return err
		}
		sums := []string{stored.SHA256}
		err = blobs.Sync(sums)
		blobs.Unpin(sums)
		if err != nil {
			return err
		}
		if stored.SHA256 != filepath.Base(path) {
			return fmt.Errorf("the backup is damaged: %s has the checksum %s: use another backup", path, stored.SHA256)
		}
	}
	return err
}
