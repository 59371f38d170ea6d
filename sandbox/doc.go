// Package sandbox holds the nouns of Glasshouse: Sandbox, Execution, Query,
// Rows, Note, Step, Connection, Refusal, Error. They are pure data. The API's JSON, the
// hatch's payload and the history row are the same struct wherever their
// shapes agree, so a field is named and documented once, here.
//
// What only the host may know (paths, pids, keys) is never a field of these
// types. What a walled-in child may claim is a type of its own, Outcome, so a
// child can never write a field that is the host's to fill.
package sandbox
