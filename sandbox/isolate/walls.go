package isolate

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Wall is one of the walls around a child. They overlap: most attacks meet several.
// Config.Without leaves some out, so that a test can show what each holds on its
// own, and that an attack succeeds where none of them stands. Only tests may set it
// (scripts/archtest sees to that): no flag and no variable of the environment does.
type Wall string

// The walls, from the root of the file system to the host's end of the hatch.
const (
	WallRoot         Wall = "root"         // a root of its own: without it the host's folders are there, writable
	WallReadOnly     Wall = "readonly"     // what that root has of its own can't be changed
	WallUser         Wall = "user"         // the user namespace; only root can do without
	WallPID          Wall = "pid"          // the pid namespaces of the stage and of each child
	WallNetwork      Wall = "network"      // the network namespace
	WallIPC          Wall = "ipc"          // the namespaces of System V and POSIX queues
	WallEnvironment  Wall = "environment"  // the fixed environment
	WallDescriptors  Wall = "descriptors"  // the fixed descriptors
	WallQuota        Wall = "quota"        // bytes and inodes of /session and /tmp
	WallRlimits      Wall = "rlimits"      //
	WallCgroups      Wall = "cgroups"      //
	WallUID          Wall = "uid"          // a user that is not root
	WallCapabilities Wall = "capabilities" // none held, none in the bounding set
	WallNoNewPrivs   Wall = "no_new_privs" // the kernel asks for it where seccomp or Landlock stand
	WallDumpable     Wall = "dumpable"     // not dumpable: nobody reads its memory
	WallDeath        Wall = "death"        // the child is killed with its zygote, whatever the namespace
	WallLandlock     Wall = "landlock"     //
	WallSeccomp      Wall = "seccomp"      //
	WallReseed       Wall = "reseed"       // random numbers of its own
	WallFreeze       Wall = "freeze"       // stopped between runs
	WallFrames       Wall = "frames"       // the kinds and sizes of frames that the hatch takes
)

// walls are those left out.
type walls []Wall

func (w walls) lack(wall Wall) bool { return slices.Contains(w, wall) }

// namespaces are the flags of the stage's clone.
func (w walls) namespaces() uintptr {
	flags := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	for wall, flag := range map[Wall]uintptr{
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
