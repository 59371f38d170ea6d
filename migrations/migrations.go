// Package migrations embeds the schema of the history database. Each file is one migration; package history runs those
// that a database does not have, in the order of their names. The SQL of a file that was released never changes: a
// change of the schema is another file.
package migrations

import "embed"

// Files holds the migrations.
//
//go:embed *.sql
var Files embed.FS
