// Package layer names the isolation layers around a guest process.
//
// The layers overlap: several of them stop most attacks. isolate.Config.Without leaves
// layers out, so that a test can show that each layer alone stops an attack, and that the
// attack succeeds without all of them. Only tests may set Without (scripts/archtest checks
// this): no flag and no environment variable sets it.
package layer

import "slices"

// Layer is the name of one isolation layer.
type Layer string

// The layers.
const (
	Root         Layer = "root"         // a private root file system; without it the machine's folders are writable
	ReadOnly     Layer = "readonly"     // the private root is mounted read-only
	User         Layer = "user"         // a user namespace; only root can leave it out
	PID          Layer = "pid"          // pid namespaces of the zygote and of each child
	Network      Layer = "network"      // a network namespace
	IPC          Layer = "ipc"          // a namespace for System V and POSIX queues
	Environment  Layer = "environment"  // a fixed list of environment variables
	Descriptors  Layer = "descriptors"  // a fixed list of open descriptors
	Quota        Layer = "quota"        // bytes and inodes of /session and /tmp
	Rlimits      Layer = "rlimits"      // setrlimit(2)
	Cgroups      Layer = "cgroups"      // memory, CPU and tasks by control groups
	UID          Layer = "uid"          // a user that is not root
	Capabilities Layer = "capabilities" // no capabilities, and an empty bounding set
	NoNewPrivs   Layer = "no_new_privs" // the kernel requires it for Seccomp and Landlock
	Dumpable     Layer = "dumpable"     // the process is not dumpable, so no other process reads its memory
	Death        Layer = "death"        // PR_SET_PDEATHSIG: the kernel kills the child when its zygote dies
	Landlock     Layer = "landlock"     // Landlock rules for files and ports
	Seccomp      Layer = "seccomp"      // the system call filter
	Reseed       Layer = "reseed"       // each child seeds its random number generators
	Freeze       Layer = "freeze"       // SIGSTOP between runs
	Frames       Layer = "frames"       // the supervisor checks the kind and size of each protocol frame
)

// Set is a list of layers.
type Set []Layer

// Has reports whether s contains l.
func (s Set) Has(l Layer) bool { return slices.Contains(s, l) }
