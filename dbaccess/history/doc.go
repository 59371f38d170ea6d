// Package history stores sandboxes, executions, recordings, artifacts and keys in the service's own PostgreSQL
// database, under a role of its own:
//
//	store, err := history.Open(ctx, history.Config{URL: url, Dir: dir}, log) // migrates; replays the write-ahead log
//	recovered, err := store.Recover(ctx)                 // closes executions that a killed service left open
//	err = store.Begin(ctx, execution)                    // on record before the code runs
//	err = store.Progress(ctx, sandbox.Progress{...})     // each query and connection, before it is made
//	err = store.Finish(ctx, execution)                   // on disk before the answer
//	execution, err := store.Execution(ctx, id)
//	err = store.Close()
//
// # Responsibilities
//
//  1. No acknowledged execution is lost. Begin, Progress and Finish append a record to a write-ahead log on this
//     machine (package wal), so the record survives kill -9. Finish also flushes the log, so the end of an execution
//     survives a crash of the machine. With Config.AsynchronousCommit the flush follows 10 ms after Finish.
//  2. A run does not wait for PostgreSQL. One goroutine inserts the records into PostgreSQL 50 ms later, in
//     batches.
//     If an execution has ended by then, only its end is inserted, once.
//  3. Readers see their own writes. A method that reads executions first waits until the records that were appended
//     before, and that it is about, are in PostgreSQL.
//  4. The backlog is bounded and shared. If records wait and none was inserted for 5 s, or the disk is nearly full,
//     Begin returns FaultUnavailable. Users whose records wait have equal shares of 64 MiB. A user whose share is used
//     up waits up to 5 s to begin a run or a statement; other users do not. Each flush takes equal parts of the records
//     of all users. Executions that run may always end. The backlog is inserted when PostgreSQL is back, or by the next
//     Open.
//  5. A bad row harms no other row. A row that PostgreSQL refuses is stored as a file in Dir/refused, the service's
//     log names the file, and a row that points to the file takes its place.
//  6. A failed log degrades. If the log cannot be written, Begin, Progress and Finish wait for PostgreSQL instead.
//  7. One service at a time uses a database. Open refuses a second one (ownership.go), and a service that another one
//     has replaced stores no more executions. Each row has its node, which is the folder of the service that wrote it.
//  8. Old executions can be deleted in small batches (retention.go). Deletion has one code path (erase.go).
//  9. An execution is stored as it is given: the record is its JSON, and Execution returns the same values.
//
// # The writer
//
//	Begin, Progress, Finish                     many goroutines, those of the callers
//	   │ append (and Finish: Sync)
//	   ▼
//	write-ahead log ──── backlog                writer.mu guards both: they have the same order
//	   ▲                    │ take
//	   │ Release            ▼
//	   └────────────── flush loop ───▶ PostgreSQL    one goroutine, one connection
//
// Open starts the flush loop after the replay. Store.Close stops it: the loop flushes once more, closes its
// connection and ends; then Close closes the log and the pools. The other goroutines are the timer of wal.Log.SyncSoon
// and the one that renews the ownership of the database (ownership.keep). A record that is still in the log then is
// replayed by the next Open.
//
// Other writes (sandboxes, recordings, artifacts, quotas) are plain statements on a pool. They do not pass through
// the log: their callers wait for PostgreSQL, and retry while it is unreachable.
package history
