// Package archtest holds the architecture's rules as tests: the layer of each package and its imports,
// where each third-party library may be imported, and who may read the environment. `scripts/check`
// runs them. A package or library that the tables do not have fails the tests, so its place is chosen
// on purpose.
package archtest
