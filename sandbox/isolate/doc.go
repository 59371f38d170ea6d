// Package isolate raises the wall around one Python process.
//
// Who runs where:
//
//	service (Go)           policy, limits, time, kill, accounting: outside
//	  stage (same binary)  new user, pid, mount, net, ipc, uts, cgroup
//	                       namespaces; builds the minimal read-only root and
//	                       execs Python; no user code
//	    zygote (Python)    imports the warm packages once, forks children; no
//	                       secret, no user code
//	      child (Python)   PID 1 of a pid namespace of its own; locks itself
//	                       down at its birth, for good, and waits; is given to a
//	                       sandbox, its limits set from outside; then runs user
//	                       code. One whose sandbox has the network on is born for
//	                       it, into a network namespace of its own
//
// That is the level full. The ladder (ladder.go) has weaker ones for machines that
// have less; each is raised, and a child tries it (probe.go), before it is taken:
//
//	full                  all of the above, limits by cgroups
//	full-without-cgroups  memory by RLIMIT_DATA; a warden holds CPU share and,
//	                      where all children have one uid, threads
//	landlock              no namespaces: the stage only execs Python. Landlock
//	                      opens what the root would have; where the uid is
//	                      shared, the filter keeps modes and times of files as
//	                      they are; children ask to die with their zygote, and
//	                      set their limits themselves when they are given to a
//	                      sandbox. /session
//	                      is a folder of the host (home.go), measured by the
//	                      warden: what is open but has no name any more escapes
//	                      it, and is bounded by max_open_files of file_max_bytes
//	rlimits               the same without Landlock, which leaves files open;
//	                      only where the operator names it
//
// A path is what it is: on the two lower levels the session's folder is the working
// directory, HOME and, beside it, TMPDIR, and "/session" exists only where the
// machine has a link /session to /proc/self/cwd, which is another folder for each
// process. Relative paths mean the same on every level.
//
// A child's lockdown is a batch of system calls that its zygote has prepared
// (batch.py, lockdown.py) and that the extension syscall_batch, where it is built,
// makes without Python. For a forked Python copies each page whose objects it looks at: that,
// the fork and the end are most of what a short run costs. For the same reason the
// extension goes round in the zygote's loop (nursery.py), too, so that its memory stays
// on huge pages; it is there before Python is (LD_PRELOAD), to place that from the first object on; the zygote has gone a child's way before, so that what it runs is
// specialised already; and a child that waits rehearses a run, so that those copies are
// not the user's to wait for.
//
// Isolator owns an edition (edition.go) of each environment of the operator's, another
// one when its packages have changed. An edition owns a nursery for each warm set: a
// zygote, and a pool of waiting children. For each nursery one goroutine keeps a living
// zygote (recycle.go): it replaces at once one that died, and in the background one that
// is worn, which lives as long as its children; two at the most fill the pool; one
// keeps a spare, a child that is only forked, for what none of the pool is fit for. An edition
// that was replaced ends with the last process and the last Home that it has. For each
// zygote one goroutine reads its control socket, and one its stderr. Process is one child: its hatch, its
// output pipes and its pidfd; whoever got it from Start must Close it, and the Home
// that was taken from it. A warden has a goroutine while its child runs.
//
// When the service dies, by whatever signal, the zygotes read EOF on their control
// sockets and exit; a zygote is the init of its pid namespace, so the kernel kills
// every child with it, and where there is no such namespace the children's death
// signal does. The folder of the lower levels is emptied at the next start.
//
// Walls overlap. walls.go names them, so that the tests in isolatetest can leave
// some out and show what each holds; nothing else can.
package isolate
