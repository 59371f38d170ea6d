package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Find says where the programs are that a server with its Config.Dir at data would be
// run by.
func FindPrograms(data string) (bin string, err error) {
	return findBin("", filepath.Join(data, "postgres", "data"))
}

// findBin finds the folder of the server's programs: dir, or the version that an
// existing cluster was made by, or the newest installed.
func findBin(dir, data string) (string, error) {
	dirs := []string{dir}
	if dir == "" {
		dirs, _ = filepath.Glob("/usr/lib/postgresql/*/bin")
		sort.Slice(dirs, func(i, j int) bool { return versionOf(dirs[i]) > versionOf(dirs[j]) })
		for _, name := range []string{"postgres", "pg_ctl"} {
			if path, err := exec.LookPath(name); err == nil {
				if real, err := filepath.EvalSymlinks(path); err == nil {
					dirs = append(dirs, filepath.Dir(real))
				}
			}
		}
	}
	body, _ := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	made := strings.TrimSpace(string(body)) // "" where there is no cluster yet
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err != nil {
			continue
		}
		// Outside of the known layout the version is not in the path: try it.
		if v := versionOf(d); dir != "" || made == "" || v == 0 || strconv.Itoa(v) == made {
			return d, nil
		}
	}
	if dir != "" {
		return "", fmt.Errorf("there is no PostgreSQL server (initdb, postgres) in %s", dir)
	}
	if made != "" {
		return "", fmt.Errorf("%s was made by PostgreSQL %s, which is not installed: run `apt-get install postgresql-%s` as root, or choose another data folder", data, made, made)
	}
	return "", errors.New("no PostgreSQL server is installed: run `apt-get install postgresql` as root, or name databases of your own")
}

func versionOf(bin string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return v
}

// account looks up whom a server of root's runs as.
func lookupAccount(name string) (*syscall.Credential, error) {
	names := []string{name}
	if name == "" {
		names = []string{"postgres", "nobody"}
	}
	for _, n := range names {
		u, err := user.Lookup(n)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU != nil || errG != nil || uid == 0 {
			return nil, fmt.Errorf("PostgreSQL cannot run as the account %q: name an ordinary one", n)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root and there is no account %s: make one (`useradd --system postgres`) or name another", strings.Join(names, " or "))
}

// makeFolders makes dir/postgres and the socket's folder, which only the server's
// account and root may enter, and sees that the account can reach them.
func (s *Server) makeFolders(dir string) error {
	mode := fs.FileMode(0o700)
	if s.cred != nil {
		mode = 0o711 // the account passes through, and cannot list
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	// PostgreSQL names its folder as the kernel does; so must we, to know it again.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	home := filepath.Join(dir, "postgres")
	s.data, s.socket = filepath.Join(home, "data"), socketDir(home)
	if s.cred != nil {
		// The data folder is ours to open a crack; what is above it is not.
		st, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if err := os.Chmod(dir, st.Mode().Perm()|0o001); err != nil {
			return err
		}
	}
	for _, d := range []string{home, s.socket} {
		if err := s.makePrivate(d); err != nil {
			return err
		}
	}
	return nil
}

// socketIn is the folder of the socket: elsewhere where the kernel could not take
// so long a path.
func socketDir(home string) string {
	socket := filepath.Join(home, "socket")
	if len(socket)+len("/.s.PGSQL.5432.lock") > maxSocketPath {
		h := fnv.New64a()
		_, _ = h.Write([]byte(home))
		socket = filepath.Join(os.TempDir(), fmt.Sprintf("glasshouse-%d-%x", os.Geteuid(), h.Sum64()))
	}
	return socket
}

// makePrivate makes one folder of mode 0700 that belongs to the server's account.
func (s *Server) makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The temporary folder is everyone's: a name taken by another must not do.
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	uid := st.Sys().(*syscall.Stat_t).Uid
	if !st.IsDir() || uid != uint32(os.Geteuid()) && (s.cred == nil || uid != s.cred.Uid) {
		return fmt.Errorf("%s is there and belongs to another account: remove it, or choose another data folder", dir)
	}
	if s.cred != nil {
		if err := s.checkReachable(dir); err != nil {
			return err
		}
		if err := os.Lchown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// reachable says whether the server's account may pass through all parents of dir.
func (s *Server) checkReachable(dir string) error {
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		st, err := os.Stat(up)
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		need := fs.FileMode(0o001)
		if sys.Uid == s.cred.Uid {
			need = 0o100
		} else if sys.Gid == s.cred.Gid {
			need = 0o010
		}
		if st.Mode().Perm()&need == 0 {
			return fmt.Errorf("PostgreSQL runs as an account other than root (uid %d) and cannot pass through %s: choose another data folder, or run `chmod o+x %s`", s.cred.Uid, up, up)
		}
		if up == "/" {
			return nil
		}
	}
}

// lockFolder takes the lock that says a service lives here. The kernel lets go of
// it when the service ends, however it ends.
func lockFolder(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); ; { // one that is just closing may take a moment
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			_ = file.Close()
			return nil, fmt.Errorf("another service uses this data folder (%s: %w): stop it, or choose another folder", path, err)
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// initdb makes the cluster aside and renames it: it is there whole or not at all.
func (s *Server) initdb(ctx context.Context) error {
	fresh := s.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd := s.command("initdb", "-D", fresh, "-U", RoleAdmin, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions", "-k")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, s.data)
}
