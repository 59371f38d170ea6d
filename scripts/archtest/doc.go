// Package archtest holds the rules of the house as tests: which floor a package
// stands on and what it may import, where each third-party library has its home,
// who may read the environment, how long a file may be. `scripts/check` runs
// them. What does not fit the tables below fails, so a new room is given its
// place here, on purpose.
package archtest
