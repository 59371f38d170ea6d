package zygote

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/procfs"
)

// UIDRange is a range of uids and gids. Each child gets one uid and gid of the range. Count is
// 0 if this process can't change its uid; all children then have the uid of this process.
type UIDRange struct{ First, Count int }

// FirstInnerUID is the first uid of the range in the user namespace of the children.
const FirstInnerUID = 1000

// The uids before the first one of a range are those of the launcher and of the zygote. Each is unprivileged, and no
// child has it.
const (
	reservedUIDs     = 2
	innerLauncherUID = 0 // in the launcher's user namespace
	innerZygoteUID   = 1
)

// Zygote returns the uid and gid of a zygote on the machine, or 0 if the range is empty.
func (r UIDRange) Zygote() int {
	if r.Count == 0 {
		return 0
	}
	return r.First - reservedUIDs + innerZygoteUID
}

// FindUIDRange returns a range that no other program is likely to use. A container often maps
// only the lower 65536 uids; FindUIDRange then returns a part of these. It returns an empty
// range if this process can't change its uid.
func FindUIDRange() UIDRange {
	if os.Geteuid() != 0 || !hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN, unix.CAP_KILL) {
		return UIDRange{}
	}
	for _, uids := range []UIDRange{{1_879_048_192, 65_536}, {20_000, 40_000}} {
		if uids.isMapped("/proc/self/uid_map") && uids.isMapped("/proc/self/gid_map") {
			return UIDRange{uids.First + reservedUIDs, uids.Count - reservedUIDs}
		}
	}
	return UIDRange{}
}

// isMapped reports whether the whole range exists in this process's user namespace.
func (r UIDRange) isMapped(file string) bool {
	for line := range strings.SplitSeq(procfs.ReadFile(file), "\n") {
		var inside, outside, size int
		if n, _ := fmt.Sscan(line, &inside, &outside, &size); n == 3 && inside <= r.First &&
			r.First+r.Count <= inside+size {
			return true
		}
	}
	return false
}

func hasCapabilities(numbers ...int) bool {
	var data [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]) != nil {
		return false
	}
	for _, n := range numbers {
		if data[0].Effective&(1<<n) == 0 {
			return false
		}
	}
	return true
}
