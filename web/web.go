// Package web holds the pages that the service serves. They load nothing from other hosts.
//
//	src        the sources of the pages under /ui/ and at /docs, in TypeScript
//	styles     their styles
//	dist       what scripts/tools/buildweb makes of both; committed, so that building the service needs no packages
package web

import (
	"embed"
	"io/fs"
)

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
