// Package environment keeps the sets of packages that code may run with, each under a
// name, in a folder of the data folder:
//
//	.pip/VERSION/        pip, apart from what it installs
//	.lock                held by whoever changes something
//	NAME/lock            what the environment is now: pip's requirements, with hashes
//	NAME/DIGEST/         a virtual environment, named by the SHA-256 of its lock
//	NAME/.new-*          one that is being made
//
// A folder that has its name is whole, and never changes. A change makes another one and
// then replaces the lock, in one step; what fails before that leaves nothing but a folder
// that the next command removes. Who uses a folder holds a shared lock on it, which ends
// with its process however that ends; a folder that is no longer current goes when an
// exclusive one can be had.
//
// The environment "default" is there without a lock, too: it is then the interpreter that
// the service was given, with the packages that it has.
//
// Nothing that a package brings is run while packages are installed, not even its .pth
// files: pip is imported from a folder of its own (pip.py). Only where the operator allows
// builds from source do these run code of theirs.
//
// There are no goroutines here. Who takes a Held must Release it.
package environment
