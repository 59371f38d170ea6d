// Package environment keeps named sets of Python packages that user code may run with.
//
// A Store is a folder below the data folder:
//
//	.lock                file lock of the current change
//	.base                path of the interpreter that the default environment is made from
//	NAME/lock            the environment's current lock: pip's requirements with hashes
//	NAME/DIGEST/         a virtual environment, named by the SHA-256 of its lock
//	NAME/.new-*          a virtual environment that is being built
//
// No file has a second name in another environment, in another version or in uv's cache, and only the owner may write
// to it (copy.go).
//
// A folder named DIGEST is complete and never changes. A change builds another folder and then replaces
// NAME/lock in one step. A failure before that step leaves only a folder, which the next change removes. A
// Version holds a shared file lock on its folder; the kernel releases the lock when the process ends. A
// folder that is no longer current is removed as soon as an exclusive lock on it succeeds.
//
// The environment "default" exists even without a lock file. It is then the interpreter that the service
// was started with, and the packages of that interpreter.
//
// uv resolves and installs packages (uv.go). No code of a package runs during this, not even its .pth files,
// because uv runs the base interpreter, which does not see the packages. If the operator allows builds from
// source, a build runs code of its package.
//
// The package starts one goroutine, which waits for the lock of the store and ends when it has the lock. Call
// Version.Release for every Version that Pin returned.
package environment
