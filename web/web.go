// Package web holds the pages; none loads a file from elsewhere.
package web

import _ "embed"

// Docs is the page that shows the API's documentation from /openapi.json.
//
//go:embed docs.html
var Docs []byte
