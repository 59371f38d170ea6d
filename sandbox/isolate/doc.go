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
//	                       down at its birth, for good, and waits; given to a
//	                       sandbox, it runs user code
//
// Isolator owns the zygote and a pool of waiting children; one goroutine reads
// the zygote's control socket, one refills the pool. Process is one child: its
// hatch, its output pipes and its pidfd; whoever got it from Start must Close
// it. When the service dies, by whatever signal, the zygote reads EOF on its
// control socket and exits; it is the init of its pid namespace, so the kernel
// kills every child with it.
//
// Walls overlap. walls.go names them, so that the tests in isolatetest can leave
// some out and show what each holds; nothing else can.
package isolate
