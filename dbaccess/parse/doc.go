// Package parse parses SQL with PostgreSQL's own parser in child processes.
//
//	pool := parse.Open()
//	result, err := pool.Parse(ctx, parse.Request{SQL: sql})
//
// The parser is recursive C code that reads untrusted text, and recover() does not catch its
// crashes. Therefore it runs in children: the service's own binary, started under another name. A
// child reads requests from standard input and answers on standard output, one at a time. A child that
// dies or takes too long is replaced, and its statement is refused. The C code never runs in the service
// itself.
//
// In a child a statement passes these steps:
//
//  1. Lexical limits (limits.go): bytes, tokens, nesting, chains of operators.
//  2. :name becomes $n (parameters.go).
//  3. The parser. Its tree is returned as JSON and read in Go. The statement has a fingerprint, too.
package parse
