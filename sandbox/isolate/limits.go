package isolate

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// boundsOf a policy, for its child's cgroup.
func boundsOf(pol policy.Policy) bounds {
	return bounds{memory: int64(pol.MaxMemoryMB) << 20, cpu: pol.CPUPercent, tasks: pol.MaxThreads + 1}
}

// limit holds a locked child to its policy. What is returned the child must set
// itself: a process without CAP_SYS_RESOURCE can't set the limits of another uid's.
func (i *Isolator) limit(p *Process, pol policy.Policy) (byItself map[int]int64, err error) {
	of := boundsOf(pol)
	if p.group != nil {
		if err := p.group.limit(of); err != nil {
			return nil, err
		}
	}
	limits := map[int]int64{
		unix.RLIMIT_NOFILE: int64(pol.MaxOpenFiles), unix.RLIMIT_FSIZE: pol.FileMaxBytes,
		unix.RLIMIT_DATA: p.dataKB<<10 + of.memory + int64(pol.MaxThreads)*8<<20, // a stack for each thread
	}
	if p.group == nil && !i.spec.Without.lack(WallCgroups) { // nor what stands in for them
		p.warden = &warden{p: p, share: pol.CPUPercent, threads: -1}
		if i.ids.count > 0 { // counted for each uid, and each child has its own
			limits[unix.RLIMIT_NPROC] = int64(of.tasks)
		} else {
			p.warden.threads = of.tasks
		}
		if !i.rung.private {
			p.warden.yards = []*yard{
				{dir: filepath.Join(p.SessionDir.dir, "session"), most: extent{pol.WorkspaceMaxBytes, inodes}},
				{dir: filepath.Join(p.SessionDir.dir, "tmp"), most: extent{tmpBytes, inodes}},
			}
		}
	}
	if i.spec.Without.lack(WallRlimits) {
		return nil, nil
	}
	if !i.rung.private {
		return limits, nil
	}
	for resource, most := range limits {
		if err := unix.Prlimit(p.pid, resource, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil); err != nil {
			return nil, fmt.Errorf("prlimit: %w", err)
		}
	}
	return nil, nil
}

// What /tmp may take, and how many files each of /session and /tmp may have, as child.py mounts them.
const (
	tmpBytes = 64 << 20
	inodes   = 16384
)

// Isolation is what an execution behind this wall reports: the level, and for each
// limit what holds it. The map is everybody's, and is not to be changed.
func (i *Isolator) Isolation() sandbox.Isolation { return i.isolation }

func (i *Isolator) describe() sandbox.Isolation {
	const service = "the service"
	measured := "SIGKILL by the service, which measures every " + pulse.String()
	by := map[string]string{
		"max_execution_time": "deadline and SIGKILL by the service",
		"cpu_percent":        "SIGSTOP by the service, which measures every " + pulse.String(),
		"max_memory_mb":      "RLIMIT_DATA",
		"max_open_files":     "RLIMIT_NOFILE",
		"max_threads":        measured,
		"max_processes":      "seccomp, which forbids processes altogether",
		"max_output_size":    service, "max_rows": service, "max_code_size": service, "upload_max_bytes": service, "upload_max_files": service,
		"lifetime": service, "idle_timeout": service,
		"file_max_bytes":        "RLIMIT_FSIZE",
		"workspace_max_bytes":   "tmpfs",
		"workspace_max_inodes":  "tmpfs",
		"enable_file_access":    "a root of its own, Landlock",
		"enable_network_access": "network namespace, seccomp",
	}
	if i.ids.count > 0 {
		by["max_threads"] = "RLIMIT_NPROC"
	}
	if i.groups != nil {
		v := fmt.Sprintf("cgroup v%d", i.groups.version)
		by["max_memory_mb"], by["cpu_percent"], by["max_threads"] = v+", RLIMIT_DATA", v, v
	}
	if !i.rung.private {
		by["workspace_max_bytes"], by["workspace_max_inodes"] = measured, measured
		by["enable_file_access"], by["enable_network_access"] = "Landlock", "seccomp"
	}
	if !i.rung.landlock {
		by["enable_file_access"] = "none"
	}
	return sandbox.Isolation{Level: i.rung.level, EnforcedBy: by}
}
