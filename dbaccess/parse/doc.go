// Package parse reads SQL with PostgreSQL's own parser, where a crash or a hang
// of it can hurt nobody.
//
// The parser is C, recurses, and is handed text by strangers; no recover() holds
// a fault in it. So it runs in children: the service's own binary, started again
// under another name, which serve reads requests from standard input in and answers
// on standard output, one at a time: first the tree, and while that is judged, the
// fingerprint. A Pool keeps a few of them. One that dies
// or takes too long is replaced, and the statement that did it is refused.
//
// In a child a statement passes the gate first, which judges by the lexer alone
// (bytes, tokens, nesting, chains); then :name becomes $n; then it is parsed. What
// comes back is bytes: the tree as JSON, read in Go by who asked. The C code
// never runs in the service itself.
package parse
