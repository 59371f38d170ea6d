package isolate

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/filetree"
	"glasshouse/sandbox/isolate/layer"
)

// Limits of /tmp, and of the number of files in each of /session and /tmp. guest.py mounts
// them with the same limits.
const (
	tmpMaxBytes = 64 << 20
	maxInodes   = 16384
)

// tcpMaxBytes limits the buffers of all TCP sockets of a child, besides its memory.
const tcpMaxBytes = 16 << 20

// threadStackBytes is added to RLIMIT_DATA for each thread.
const threadStackBytes = 8 << 20

// cgroupLimits returns the limits of a process's control group.
func cgroupLimits(pol policy.Policy) cgroup.Limits {
	limits := cgroup.Limits{
		MemoryBytes: int64(pol.MaxMemoryMB) << 20,
		CPUPercent:  pol.CPUPercent,
		Tasks:       pol.MaxThreads + 1,
	}
	if pol.EnableNetworkAccess {
		limits.TCPBytes = tcpMaxBytes
	}
	return limits
}

// setLimits sets the limits of a policy for a locked-down child. It returns the resource
// limits that the child must set itself, because a process without CAP_SYS_RESOURCE can't
// set the limits of a process with another uid.
func (i *Isolator) setLimits(p *Process, pol policy.Policy) (bySelf map[int]int64, err error) {
	group := cgroupLimits(pol)
	if p.group != nil {
		if err := p.group.SetLimits(group); err != nil {
			return nil, err
		}
	}
	limits := map[int]int64{
		unix.RLIMIT_NOFILE: int64(pol.MaxOpenFiles),
		unix.RLIMIT_FSIZE:  pol.FileMaxBytes,
		unix.RLIMIT_DATA:   p.zygote.DataKB<<10 + group.MemoryBytes + int64(pol.MaxThreads)*threadStackBytes,
	}
	without := i.baseSpec.Without
	if p.group == nil &&
		!without.Has(layer.Cgroups) { // a test that leaves out cgroups also leaves out their substitutes
		p.enforcer = &limitEnforcer{
			process: p, cpuPercent: pol.CPUPercent, maxMemory: group.MemoryBytes, maxThreads: -1,
		}
		if i.uids.Count > 0 { // the kernel counts by uid, and each child has its own
			limits[unix.RLIMIT_NPROC] = int64(group.Tasks)
		} else {
			p.enforcer.maxThreads = group.Tasks
		}
		if !i.level.namespaces {
			p.enforcer.folders = []*measuredFolder{
				{
					path:  filepath.Join(p.SessionDir.folder, "session"),
					limit: filetree.Size{Bytes: pol.WorkspaceMaxBytes, Files: maxInodes},
				},
				{
					path:  filepath.Join(p.SessionDir.folder, "tmp"),
					limit: filetree.Size{Bytes: tmpMaxBytes, Files: maxInodes},
				},
			}
		}
	}
	if without.Has(layer.Rlimits) {
		return nil, nil
	}
	if !i.level.namespaces {
		return limits, nil
	}
	for resource, value := range limits {
		if err := unix.Prlimit(p.pid, resource, &unix.Rlimit{Cur: uint64(value), Max: uint64(value)}, nil); err != nil {
			return nil, fmt.Errorf("prlimit: %w", err)
		}
	}
	return nil, nil
}

// Isolation returns the level and the mechanism that enforces each limit, as executions report
// them. Callers share the map, and must not change it.
func (i *Isolator) Isolation() sandbox.Isolation { return i.isolation }

// Users returns the users among whom CPU time is divided; it may be nil.
func (i *Isolator) Users() *limit.Users { return i.config.Users }

func (i *Isolator) describeLimits() sandbox.Isolation {
	const service = "the service"
	measured := "SIGKILL by the service, which measures every " + measureInterval.String()
	by := map[string]string{
		"max_execution_time":    "deadline and SIGKILL by the service",
		"cpu_percent":           "SIGSTOP by the service, which measures every " + measureInterval.String(),
		"max_memory_mb":         "RLIMIT_DATA; " + measured,
		"max_open_files":        "RLIMIT_NOFILE",
		"max_threads":           measured,
		"max_processes":         "seccomp, which forbids processes altogether",
		"max_output_size":       service,
		"max_rows":              service,
		"max_code_size":         service,
		"upload_max_bytes":      service,
		"upload_max_files":      service,
		"lifetime":              service,
		"idle_timeout":          service,
		"file_max_bytes":        "RLIMIT_FSIZE",
		"workspace_max_bytes":   "tmpfs",
		"workspace_max_inodes":  "tmpfs",
		"enable_file_access":    "a root of its own, Landlock",
		"enable_network_access": "network namespace, seccomp",
	}
	if i.uids.Count > 0 {
		by["max_threads"] = "RLIMIT_NPROC"
	}
	if i.cgroups != nil {
		v := fmt.Sprintf("cgroup v%d", i.cgroups.Version())
		by["max_memory_mb"], by["cpu_percent"], by["max_threads"] = v+", RLIMIT_DATA", v, v
	}
	if !i.level.namespaces {
		by["workspace_max_bytes"], by["workspace_max_inodes"] = measured, measured
		by["enable_file_access"], by["enable_network_access"] = "Landlock", "seccomp"
	}
	if !i.level.landlock {
		by["enable_file_access"] = "none"
	}
	return sandbox.Isolation{Level: i.level.name, EnforcedBy: by}
}
