// Package web holds the pages that the service serves. They load nothing from other hosts.
package web

import _ "embed"

// Docs is the page at /docs, which shows /openapi.json.
//
//go:embed docs.html
var Docs []byte
