// Package sandbox has the nouns of Glasshouse, as data without behaviour.
//
//	e := sandbox.Execution{ID: id, Status: sandbox.StatusRunning, Code: "1 + 1"}
//
// An Execution is the record of one run of code in a Sandbox. It has the Outcome that the
// supervisor found out, and what the service adds: each Query, Connection and Artifact. The
// package declares:
//
//  1. the API's JSON and history's record, which are the same struct if their shapes
//     agree, so that a field is named and documented once;
//  2. Error and Refusal, the errors that a caller can act on;
//  3. small functions on these types and on their JSON.
//
// Secrets of the service, such as paths and process IDs, are never a field of these types.
// A guest's claims have types of their own in package protocol, so that a guest cannot set
// a field that belongs to the service.
package sandbox
