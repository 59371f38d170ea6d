package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/procfs"
)

// serviceGroup is the group to which vacate moves the service.
const serviceGroup = "glasshouse-service"

// vacate moves a process and its descendants from base, a group of version 2, to the group serviceGroup below it. A
// group that contains processes can't have controllers below it, and systemd starts a service in the group that it
// delegates to it (Delegate=). vacate moves nothing and returns an error if another process is in base: then the group
// is not the service's own, but for example that of a terminal.
func vacate(base string, pid int) error {
	target := filepath.Join(base, serviceGroup)
	if err := os.Mkdir(target, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for { // until no process is left: one that was not moved yet can have started another
		text, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
		if err != nil {
			return err
		}
		members := strings.Fields(string(text))
		for _, member := range members {
			if n, _ := strconv.Atoi(member); !descends(n, pid) {
				_ = os.Remove(target)
				return fmt.Errorf("the control group %s also has the process %s: %w", base, member, unix.EBUSY)
			}
		}
		for _, member := range members {
			if err := writeFile(target, "cgroup.procs", member); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if len(members) == 0 {
			return nil
		}
	}
}

// descends reports whether a process is ancestor, was started by it or by one of its descendants, or is gone.
func descends(pid, ancestor int) bool {
	for pid != ancestor {
		fields := strings.Fields(procfs.ReadFile("/proc/" + strconv.Itoa(pid) + "/status"))
		parent := slices.Index(fields, "PPid:")
		if parent < 0 {
			return true
		}
		if pid, _ = strconv.Atoi(fields[parent+1]); pid <= 0 {
			return false
		}
	}
	return true
}
