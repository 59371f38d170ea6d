package isolate

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Layer is one of the walls around a child. They overlap: most attacks meet several.
// Config.Without leaves some out, so that a test can show what each holds on its
// own, and that an attack succeeds where none of them stands. Only tests may set it
// (scripts/archtest sees to that): no flag and no variable of the environment does.
type Layer string

// The walls, from the root of the file system to the host's end of the hatch.
const (
	WallRoot         Layer = "root"         // a root of its own: without it the host's folders are there, writable
	WallReadOnly     Layer = "readonly"     // what that root has of its own can't be changed
	WallUser         Layer = "user"         // the user namespace; only root can do without
	WallPID          Layer = "pid"          // the pid namespaces of the stage and of each child
	WallNetwork      Layer = "network"      // the network namespace
	WallIPC          Layer = "ipc"          // the namespaces of System V and POSIX queues
	WallEnvironment  Layer = "environment"  // the fixed environment
	WallDescriptors  Layer = "descriptors"  // the fixed descriptors
	WallQuota        Layer = "quota"        // bytes and inodes of /session and /tmp
	WallRlimits      Layer = "rlimits"      //
	WallCgroups      Layer = "cgroups"      //
	WallUID          Layer = "uid"          // a user that is not root
	WallCapabilities Layer = "capabilities" // none held, none in the bounding set
	WallNoNewPrivs   Layer = "no_new_privs" // the kernel asks for it where seccomp or Landlock stand
	WallDumpable     Layer = "dumpable"     // not dumpable: nobody reads its memory
	WallDeath        Layer = "death"        // the child is killed with its zygote, whatever the namespace
	WallLandlock     Layer = "landlock"     //
	WallSeccomp      Layer = "seccomp"      //
	WallReseed       Layer = "reseed"       // random numbers of its own
	WallFreeze       Layer = "freeze"       // stopped between runs
	WallFrames       Layer = "frames"       // the kinds and sizes of frames that the hatch takes
)

// walls are those left out.
type walls []Layer

func (w walls) lack(wall Layer) bool { return slices.Contains(w, wall) }

// namespaces are the flags of the stage's clone.
func (w walls) namespaces() uintptr {
	flags := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	for wall, flag := range map[Layer]uintptr{
		WallUser: unix.CLONE_NEWUSER, WallPID: unix.CLONE_NEWPID, WallNetwork: unix.CLONE_NEWNET, WallIPC: unix.CLONE_NEWIPC,
	} {
		if !w.lack(wall) {
			flags |= flag
		}
	}
	return flags
}

// host are the folders of the host's root, but those that the stage makes itself.
func (w walls) host() (folders []string) {
	entries, _ := os.ReadDir("/")
	for _, e := range entries {
		if e.IsDir() && !slices.Contains([]string{"tmp", "session", "data", "glasshouse", "packages", "work"}, e.Name()) {
			folders = append(folders, "/"+e.Name())
		}
	}
	return folders
}

// environment is that of this process.
func (w walls) environment() []string {
	raw, _ := os.ReadFile("/proc/self/environ")
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}
