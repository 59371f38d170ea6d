// Package migrations embeds the schema of the history database, one file a
// version, run in the order of their names. A file that has landed never changes.
package migrations

import "embed"

// Files holds the *.sql files.
//
//go:embed *.sql
var Files embed.FS
