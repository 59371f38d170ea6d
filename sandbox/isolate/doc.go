// Package isolate runs Python processes behind isolation layers.
//
//	func main() {
//		isolate.RunLauncher() // first: the package runs this binary again as its launcher
//		isolator, err := isolate.Open(isolate.Config{Python: python, WarmSets: isolate.WarmSets(4), ...})
//		process, err := isolator.Start(ctx, isolate.ProcessSpec{Policy: policy.Default()})
//		process.EnforceLimits()
//		err = process.Conn.Write(...) // package protocol
//		process.Close()
//		isolator.Close()
//	}
//
// The package is responsible for
//
//  1. choosing a level: Open takes the strongest level of this machine in which a child
//     process has failed to break out (level.go, verify_level.go);
//  2. starting processes fast: one WarmEnvironment for each environment has a zygotePool
//     for each WarmSet, with children that wait for a sandbox (zygote_pool.go);
//  3. limits: the kernel enforces them where possible, else a limitEnforcer measures and
//     kills processes (limits.go, limit_enforcer.go);
//  4. the files of a session: a SessionDir outlives the processes that use it
//     (session_dir.go);
//  5. reporting what a machine supports: the command doctor prints the report of
//     ProbeMachine (probe_machine.go).
//
// Package layer names the layers, seccomp builds the system call filter, cgroup manages
// control groups, zygote starts interpreters, and filetree handles folders that user
// code wrote.
//
// # Which process runs which code
//
//	service (Go)          trusted: policy, limits, time, kill, accounting
//	  launcher (Go)       the same binary in new namespaces; builds the root, and gives
//	                      children their ids, mounts and networks; no user code, no package
//	    zygote (Python)   gives up its rights, imports packages and forks children; no
//	                      secret, no user code
//	      child (Python)  PID 1 of its own pid namespace; locks itself down permanently
//	                      before it is assigned to a sandbox; then runs user code
//
// The service and the launcher are the supervisor's side. The child is the guest. Packages
// run in the zygote, so the service checks what it sends. Without namespaces the launcher
// becomes the zygote. If the service dies, each zygote reads EOF on its control socket and
// exits, and the kernel kills its children.
//
// # Levels
//
//	full                  all layers, limits by cgroups
//	full-without-cgroups  memory by RLIMIT_DATA and a limitEnforcer, which also limits the CPU
//	                      share and, if all children have the same uid, the number of threads.
//	                      The system call filter refuses shared memory without a file
//	landlock              no namespaces. Landlock restricts files. If children share the
//	                      service's uid, the system call filter prevents changes of file
//	                      modes and times. Children set their own limits when they are
//	                      assigned. /session is a folder of the machine, which the
//	                      limitEnforcer measures; open files without a name are not
//	                      measured, and max_open_files times file_max_bytes bounds them
//	rlimits               as landlock, but files are readable, and Landlock, where the kernel
//	                      has it, only limits writes. Used only if the operator chooses it,
//	                      and refused if children share the service's uid
//
// On the lower two levels the path /session exists only if the machine has a symbolic
// link /session to /proc/self/cwd. The session's folder is the working directory and
// HOME on every level, so relative paths always work.
//
// # Why a fork is fast
//
// A forked Python process copies each page with an object that it uses. Those copies, the
// fork and the exit are most of the cost of a short run. Therefore a zygote prepares a
// child's lockdown as one batch of system calls (syscalls.py, lockdown.py). The C extension
// syscall_batch makes these calls without Python, and runs the zygote's loop, so that the zygote
// writes to few pages. It also moves the zygote's memory to a sealed file. The children map that
// file privately. The extension is preloaded (LD_PRELOAD), because it allocates the memory of all
// objects. A zygote executes a child's code once itself, so that the interpreter has specialised
// that code before the fork, and a waiting child rehearses a run.
//
// The preloaded extension also replaces the functions of the C library that read clocks, sleep
// and return random bytes. They do the same as before, except in the thread of a run whose
// inputs are logged or replayed: see protocol.Inputs.
//
// # Goroutines
//
// Each zygotePool has one goroutine that keeps a zygote alive, at most two that fill the
// pool, and one that keeps a spare child. Each zygote has one for its control socket, one
// for its output, and one for the questions of its filter. A limitEnforcer has one while its
// child runs. One goroutine makes children that become idle for long give back memory, while
// there are any.
package isolate
