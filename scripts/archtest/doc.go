// Package archtest contains the rules of the architecture as tests: the layer of each package and its imports, the
// packages that may import each third-party library, and the packages that may read the environment. `scripts/check`
// runs the tests. They fail for a package or library that is missing in the tables, so that somebody decides where
// it belongs.
package archtest
