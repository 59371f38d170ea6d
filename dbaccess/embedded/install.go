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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// FindPrograms returns the folder of the PostgreSQL programs that Start would use for the data folder dir.
func FindPrograms(dir string) (bin string, err error) {
	return findBin(filepath.Join(dir, "postgres", "data"))
}

// findBin returns the folder of the server's programs, of the version that made the existing cluster or, without a
// cluster, of the newest installed version.
func findBin(data string) (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return versionOf(b) - versionOf(a) })
	for _, name := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	body, _ := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	clusterVersion := strings.TrimSpace(string(body)) // "": there is no cluster yet
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err != nil {
			continue
		}
		// 0: the path does not tell the version, so it is tried.
		if v := versionOf(d); clusterVersion == "" || v == 0 || strconv.Itoa(v) == clusterVersion {
			return d, nil
		}
	}
	if clusterVersion != "" {
		return "", fmt.Errorf("%s was made by PostgreSQL %s, which is not installed: "+
			"run `apt-get install postgresql-%[2]s` as root, or choose another data folder", data, clusterVersion)
	}
	return "", errors.New("no PostgreSQL server is installed: " +
		"run `apt-get install postgresql` as root, or name databases of your own")
}

func versionOf(bin string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return v
}

// lookupAccount returns the account that the server runs as if the service runs as root.
func lookupAccount() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errU != nil || errG != nil || uid == 0 {
			return nil, fmt.Errorf("PostgreSQL cannot run as the account %q: give it a uid other than root's", name)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no account postgres or nobody: " +
		"make one (`useradd --system postgres`)")
}

// makeFolders makes dir/postgres and the folder of the socket, which only the server's account and root may enter, and
// checks that the account can reach them.
func (s *Server) makeFolders(dir string) error {
	mode := fs.FileMode(0o700)
	if s.cred != nil {
		mode = 0o711 // the account passes through the folder, and cannot list it
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	// isOurs compares the folder with the working directory of processes, in which the kernel has resolved links.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	postgresDir := filepath.Join(dir, "postgres")
	s.data, s.socket = filepath.Join(postgresDir, "data"), socketDir(postgresDir)
	if s.cred != nil {
		// The package changes the mode of the data folder only; checkReachable checks the folders above.
		st, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if err := os.Chmod(dir, st.Mode().Perm()|0o001); err != nil {
			return err
		}
	}
	for _, d := range []string{postgresDir, s.socket} {
		if err := s.makePrivate(d); err != nil {
			return err
		}
	}
	return nil
}

// socketDir returns the folder of the socket. It is in the temporary folder if the path would be too long for the
// kernel.
func socketDir(postgresDir string) string {
	socket := filepath.Join(postgresDir, "socket")
	if len(socket)+len("/.s.PGSQL.5432.lock") > maxSocketPath {
		h := fnv.New64a()
		_, _ = h.Write([]byte(postgresDir))
		socket = filepath.Join(os.TempDir(), fmt.Sprintf("glasshouse-%d-%x", os.Geteuid(), h.Sum64()))
	}
	return socket
}

// makePrivate makes a folder of mode 0700 that belongs to the server's account.
func (s *Server) makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Everyone may write to the temporary folder: another account may have made the folder.
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	uid := st.Sys().(*syscall.Stat_t).Uid
	if !st.IsDir() || uid != uint32(os.Geteuid()) && (s.cred == nil || uid != s.cred.Uid) {
		return fmt.Errorf("%s exists and belongs to another account: remove it, or choose another data folder", dir)
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

// checkReachable returns an error if the server's account may not pass through a folder above dir.
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
			return fmt.Errorf("PostgreSQL runs as an account other than root (uid %d) and cannot pass through %s: "+
				"choose another data folder, or run `chmod o+x %[2]s`", s.cred.Uid, up)
		}
		if up == "/" {
			return nil
		}
	}
}

// lockFolder takes the lock that keeps two services from using one data folder. The kernel releases the lock when the
// service ends, even if the service is killed.
func lockFolder(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || ctx.Err() != nil {
			_ = file.Close()
			return nil, fmt.Errorf("another service uses this data folder (%s: %w): "+
				"stop that service, or choose another folder", path, err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// initdb makes the cluster under another name and renames it, so that a service that is killed leaves no half cluster.
func (s *Server) initdb(ctx context.Context) error {
	temp := s.data + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	args := []string{"-D", temp, "-U", RoleAdmin, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
		"--no-instructions", "--data-checksums"}
	if slices.Contains(s.settings, "fsync=off") {
		args = append(args, "--no-sync")
	}
	cmd := s.command("initdb", args...)
	names, remedy, err := s.nameAccount()
	if err != nil {
		return err
	}
	cmd.Env = slices.Concat(cmd.Env, names)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s%s", err, strings.TrimSpace(string(out)), remedy)
	}
	return os.Rename(temp, s.data)
}

// nameAccount returns variables that give initdb a name for the service's account, or none if the machine has one. A
// container may run with any uid, and initdb ends if its uid has no name, although -U replaces that name. No other
// program of PostgreSQL asks for it. The library nss_wrapper answers with the entry of a file: a container may not
// write to /etc/passwd, and may have no user namespaces. remedy ends the error of initdb.
func (s *Server) nameAccount() (variables []string, remedy string, err error) {
	uid := strconv.Itoa(os.Geteuid())
	_, err = user.LookupId(uid)
	if _, unknown := errors.AsType[user.UnknownUserIdError](err); s.cred != nil || !unknown {
		return nil, "", nil
	}
	passwd := filepath.Join(filepath.Dir(s.data), "passwd")
	entry := fmt.Sprintf("%s:x:%s:%d::/:/bin/false\n", RoleAdmin, uid, os.Getegid())
	if err := os.WriteFile(passwd, []byte(entry), 0o600); err != nil {
		return nil, "", err
	}
	// The library answers only if both files are named.
	return []string{"LD_PRELOAD=libnss_wrapper.so", "NSS_WRAPPER_PASSWD=" + passwd, "NSS_WRAPPER_GROUP=/etc/group"},
		"; the uid " + uid + " has no name on this machine: run `apt-get install libnss-wrapper` as root, " +
			"or run the service as an account of /etc/passwd", nil
}
