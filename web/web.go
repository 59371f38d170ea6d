// Package web holds the pages that the service serves. They load nothing from other hosts.
//
//	docs.html  the page at /docs
//	src        the sources of the pages under /ui/, in TypeScript
//	styles     their styles
//	dist       what scripts/tools/buildweb makes of both; committed, so that building the service needs no packages
package web

import (
	"embed"
	"io/fs"
)

// Docs is the page at /docs, which shows /openapi.json.
//
//go:embed docs.html
var Docs []byte

//go:embed dist
var dist embed.FS

// Pages returns the files of the pages under /ui/.
func Pages() fs.FS {
	pages, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // dist is a valid name
	}
	return pages
}
