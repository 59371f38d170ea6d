// Package sandbox declares the data types of Glasshouse.
//
//	e := sandbox.Execution{ID: id, Status: sandbox.StatusRunning, Code: "1 + 1"}
//
// An Execution is the record of one run of code in a Sandbox. It contains the Outcome from
// the supervisor, and each Query, Connection and Artifact, which the service adds. The
// package declares:
//
//  1. the API's JSON and history's records; one struct serves both if they have the same
//     fields, so that a field is named and documented once;
//  2. Error and Refusal, the errors that a caller can act on;
//  3. small functions on these types and on their JSON.
//
// These types have no field for a secret of the service, such as a path or a process ID.
// The messages of a guest have their own types in package protocol, so that a guest cannot
// set a field that belongs to the service.
package sandbox
